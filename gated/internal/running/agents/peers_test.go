package agents

import "testing"

func TestPeers_Groups_AreThoseNamedAndBelow(t *testing.T) {
	t.Parallel()
	p := Peers{Self: 1, Groups: []string{"acme", "other/*"}}
	for folder, want := range map[string]bool{
		"acme": true, "acme/eng": false, "acmex": false, "other": false, "other/a": true, "other/a/b": true, "otherx/a": false,
	} {
		if got := p.runs(folder); got != want {
			t.Errorf("%s: %t", folder, got)
		}
	}
	if !(Peers{Self: 1}).runs("any") {
		t.Error("without names it does not run all")
	}
}
