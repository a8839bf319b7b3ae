package adaptertest

import (
	"slices"
	"testing"

	"arizuko/pkg/msg"
)

func TestPlan_InjectsOneFaultPerChat(t *testing.T) {
	for _, class := range []msg.ErrorClass{msg.Permanent, msg.Rate, msg.Auth, msg.Ambiguous, msg.Transient} {
		var p Plan
		injected := func(chat string) (with []msg.ErrorClass) {
			called := false
			p.Deliver(t.Context(), chat, func(f Fault) {
				if called {
					t.Errorf("%s: injected after the call", class)
				}
				with = append(with, f.Class)
			}, func() { called = true })
			if !called {
				t.Errorf("%s: not called", class)
			}
			return with
		}
		p.Fail("a", Fault{Class: msg.Permanent})
		p.Fail("a", Fault{Class: class})
		if p.Unreached("b") || injected("b") != nil {
			t.Errorf("%s: another chat fails", class)
		}
		want := []msg.ErrorClass{class}
		if class == msg.Transient {
			want = nil
		}
		if unreached := p.Unreached("a"); unreached != (want == nil) {
			t.Errorf("%s: unreached is %v", class, unreached)
		}
		if with := injected("a"); !slices.Equal(with, want) {
			t.Errorf("%s: injected %v", class, with)
		}
		if p.Unreached("a") || injected("a") != nil {
			t.Errorf("%s: it fails twice", class)
		}
	}
}
