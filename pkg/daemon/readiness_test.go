package daemon_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
)

func TestReadiness_Status_HasReasonsInOrderAndNotes(t *testing.T) {
	var r daemon.Readiness
	want := func(waiting, notes []string) {
		t.Helper()
		gotWaiting, gotNotes := r.Status()
		if diff := cmp.Diff([][]string{waiting, notes}, [][]string{gotWaiting, gotNotes}); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	want(nil, nil)
	r.Note("table", "route 7 matches nothing")
	r.Wait("table", "routes are not seen", errors.New("disk I/O error"))
	r.Wait("start", "schema 1 of 2", nil)
	r.Wait("start", "schema 2 of 3", nil)
	want([]string{"schema 2 of 3", "routes are not seen"}, []string{"routes are not seen: disk I/O error", "route 7 matches nothing"})
	r.Wait("table", "", nil)
	r.Wait("start", "", nil)
	want(nil, []string{"route 7 matches nothing"})
	r.Note("table")
	want(nil, nil)
}
