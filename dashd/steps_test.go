package main

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
