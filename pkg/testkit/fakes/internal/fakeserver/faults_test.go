package fakeserver_test

import (
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// fault is one of some platform: for a call of that name, or for any.
type fault struct{ call, name string }

func (f *fault) means(call string) bool { return f.call == call || f.call == "" }

func TestFaults(t *testing.T) {
	type add struct {
		fault
		times int
	}
	tests := []struct {
		name string
		adds []add
		want string // what a, a, b, a and b meet; - is nothing
	}{
		{"none", nil, "- - - - -"},
		{"zero is one", []add{{fault{"a", "1"}, 0}}, "1 - - - -"},
		{"some", []add{{fault{"", "1"}, 3}}, "1 1 1 - -"},
		{"no end", []add{{fault{"b", "1"}, -1}}, "- - 1 - 1"},
		{"in turn", []add{{fault{"a", "1"}, 1}, {fault{"a", "2"}, 1}}, "1 2 - - -"},
		{"past what means others", []add{{fault{"b", "1"}, 1}, {fault{"", "2"}, 2}}, "2 2 1 - -"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := fakeserver.NewFaults((*fault).means)
			for _, a := range tt.adds {
				q.Add(a.fault, a.times)
			}
			var got []string
			for _, call := range []string{"a", "a", "b", "a", "b"} {
				name := q.Next(call).name
				if name == "" {
					name = "-"
				}
				got = append(got, name)
			}
			if all := strings.Join(got, " "); all != tt.want {
				t.Errorf("got %s, want %s", all, tt.want)
			}
		})
	}
}

func TestHeal(t *testing.T) {
	q := fakeserver.NewFaults((*fault).means)
	q.Add(fault{"", "1"}, -1)
	q.Heal()
	if f := q.Next("a"); f != (fault{}) {
		t.Errorf("still %v", f)
	}
}
