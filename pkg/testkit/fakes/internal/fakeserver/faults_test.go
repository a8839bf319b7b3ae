package fakeserver_test

import (
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// fault is one of some platform: for calls of that name, or for all.
type fault struct {
	call, name string
	times      int
}

func (f *fault) matches(call string) bool { return f.call == call || f.call == "" }

// prepare marks the name of a fault, as a platform completes one.
func (f *fault) prepare() (times int) {
	f.name += "!"
	return f.times
}

func newFaults() *fakeserver.Faults[fault] {
	return fakeserver.NewFaults((*fault).matches, (*fault).prepare)
}

func TestFaults_NextFault(t *testing.T) {
	tests := []struct {
		name   string
		faults []fault
		want   string // the faults of calls a, a, b, a and b; - is none
	}{
		{"none", nil, "- - - - -"},
		{"zero is one", []fault{{"a", "1", 0}}, "1! - - - -"},
		{"some", []fault{{"", "1", 3}}, "1! 1! 1! - -"},
		{"without limit", []fault{{"b", "1", -1}}, "- - 1! - 1!"},
		{"in order", []fault{{"a", "1", 1}, {"a", "2", 1}}, "1! 2! - - -"},
		{"skips faults of other calls", []fault{{"b", "1", 1}, {"", "2", 2}}, "2! 2! 1! - -"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := newFaults()
			q.InjectFault(tt.faults...)
			var got []string
			for _, call := range []string{"a", "a", "b", "a", "b"} {
				name := q.NextFault(call).name
				if name == "" {
					name = "-"
				}
				got = append(got, name)
			}
			if all := strings.Join(got, " "); all != tt.want {
				t.Errorf("got %s, want %s", all, tt.want)
			}
			q.ClearFaults()
			if f := q.NextFault("b"); f != (fault{}) {
				t.Errorf("got %v after ClearFaults", f)
			}
		})
	}
}
