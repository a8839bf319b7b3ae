package doctor

import (
	"slices"
	"testing"

	"arizuko/pkg/daemon"
)

func TestEndpoints_AreOfAllOtherDaemons(t *testing.T) {
	t.Parallel()
	names := []string{"dashd"}
	for _, e := range (Peers{}).Endpoints([]string{"ACCOUNTS=teled+work"}) {
		names = append(names, e.Name)
	}
	want := append(daemon.Suite(), "teled+work")
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("endpoints of %q, want %q", names, want)
	}
}
