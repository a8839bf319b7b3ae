package daemon_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
)

func TestReadiness_Status_KeepsCausesAmongNotes(t *testing.T) {
	var r daemon.Readiness
	r.Note("table", "route 7 matches nothing")
	r.Wait("table", "routes are not seen", errors.New("disk I/O error"))
	r.Wait("start", "the schema is too old", nil)
	waiting, notes := r.Status()
	if diff := cmp.Diff([]string{"the schema is too old", "routes are not seen"}, waiting); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"routes are not seen: disk I/O error", "route 7 matches nothing"}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	r.Wait("table", "", nil)
	r.Wait("start", "", nil)
	if waiting, notes := r.Status(); waiting != nil || len(notes) != 1 {
		t.Errorf("then %q, %q", waiting, notes)
	}
}
