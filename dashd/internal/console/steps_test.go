package console

import (
	"slices"
	"testing"

	"arizuko/pkg/daemon"
)

func TestPlatforms_AreThoseOfTheAdapters(t *testing.T) {
	t.Parallel()
	var names, want []string
	for _, p := range platforms() {
		names = append(names, p.Daemon)
	}
	for _, a := range daemon.Adapters() {
		want = append(want, a.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("first steps explain %q, want %q", names, want)
	}
}

func TestIsOf_AnyAccount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"teled": true, "teled+work": true, "slakd+work": false, "gated": false} {
		if got := isOf(name, "teled"); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
