package store_test

import (
	"errors"
	"testing"

	"arizuko/pkg/store"
)

// refused runs a write that must return ErrStale.
func refused(t *testing.T, s *store.Store, what string, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); !errors.Is(err, store.ErrStale) {
		t.Errorf("%s: error %v, want ErrStale", what, err)
	}
}
