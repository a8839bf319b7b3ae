package msg_test

import (
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

// Each reason has words of its own, which do not contain its code unless that is a plain word.
func TestReason_Words_EachHasItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]msg.Reason{}
	for _, r := range msg.Reasons {
		words := r.Code.Words()
		switch other, known := seen[words]; {
		case words == string(r.Code) && r.Code != msg.ReasonAnswered:
			t.Errorf("%s has no words", r.Code)
		case strings.Contains(words, "_"):
			t.Errorf("%s: %q has a code", r.Code, words)
		case known:
			t.Errorf("%s and %s are both %q", r.Code, other, words)
		case len(words) > 64:
			t.Errorf("%s: %q is too long for a line of a list", r.Code, words)
		}
		seen[words] = r.Code
	}
}

func TestMessage_Outcome_NamesGroupAndCause(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]msg.Message{
		"not decided yet":                                    {},
		"went to main because a route leads there":           {Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", Verb: msg.VerbMessage},
		"went to main because a route takes mentions":        {Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", Verb: msg.VerbMention},
		"went to the group because the chat is pinned to it": {Disposition: msg.Routed, Reason: msg.ReasonToSticky, RoutedTo: "daemon:x"},
		"not answered: no route takes it":                    {Disposition: msg.Dropped, Reason: msg.ReasonNoRoute},
		"not answered":                                       {Disposition: msg.Dropped},
		"odd_code":                                           {Disposition: msg.Dropped, Reason: "odd_code"},
	} {
		if got := m.Outcome(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}

func TestDisposition_Words_EachHasItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range []msg.Disposition{"", msg.Sticky, msg.Command, msg.Prefix, msg.Routed, msg.Observed, msg.Dropped, msg.Onboarding} {
		if words := d.Words(); words == string(d) || seen[words] {
			t.Errorf("%q: %q", d, words)
		}
		seen[d.Words()] = true
	}
}
