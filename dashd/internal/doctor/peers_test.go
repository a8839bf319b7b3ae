package doctor

import (
	"slices"
	"testing"

	"arizuko/pkg/daemon"
)

func TestEndpoints_AreOfAllDaemons(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range Endpoints(nil, []string{"ACCOUNTS=teled+work"}) {
		names = append(names, e.Name)
	}
	want := append(daemon.Suite(), "teled+work")
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("endpoints of %q, want %q", names, want)
	}
}
