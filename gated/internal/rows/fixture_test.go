package rows_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func differ(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// refused runs a write that must return ErrStale.
func refused(t *testing.T, s *store.Store, what string, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); !errors.Is(err, store.ErrStale) {
		t.Errorf("%s: error %v, want ErrStale", what, err)
	}
}

func turnIDs(turns []*msg.Turn) (all []int64) {
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}

func ids(list []*msg.Message) (all []int64) {
	for _, m := range list {
		all = append(all, m.ID)
	}
	return all
}
