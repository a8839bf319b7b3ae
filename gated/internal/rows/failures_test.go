package rows_test

import (
	"slices"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	fail := func(problem string) (alike bool) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			alike, err = rows.CountFailure(tx, storetest.Folder, problem, 100, 900)
			return err
		})
		return alike
	}
	for i, problem := range []string{"x", "x", "y", "y"} {
		if fail(problem) {
			t.Errorf("alike after failure %d", i)
		}
	}
	if at := storetest.Must(rows.ProbeAt(t.Context(), s.Reader, storetest.Folder))(t); at != 0 {
		t.Errorf("probe at %d", at)
	}
	if !fail("y") || !fail("another one of a probe") {
		t.Error("three failures in a row are not alike")
	}
	want := []factrows.GroupFailures{{Folder: storetest.Folder, Problem: "another one of a probe", Count: 4, Since: 100, ProbeAt: 900}}
	if got := storetest.Must(factrows.FailingGroups(t.Context(), s.Reader))(t); !slices.Equal(got, want) {
		t.Errorf("failing: %+v", got)
	}
	waiting := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, waiting.ID, rows.Requeue{WaitsFor: msg.WaitsProbe, NotBefore: 900})
	})
	var cleared bool
	var lanes []string
	clear := func() {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			cleared, lanes, err = rows.ClearFailures(tx, storetest.Folder)
			return err
		})
	}
	clear()
	if !cleared || !slices.Equal(lanes, []string{storetest.Folder}) || storetest.Turn(t, s, waiting.ID).WaitsFor != "" {
		t.Errorf("cleared %t, lanes %q, turn %+v", cleared, lanes, storetest.Turn(t, s, waiting.ID))
	}
	if clear(); cleared {
		t.Error("cleared twice")
	}
}
