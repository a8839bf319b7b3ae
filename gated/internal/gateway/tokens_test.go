package gateway

import (
	"testing"

	"arizuko/gated/internal/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestFindPrefix(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := func(text string, change ...func(*row)) *row {
		r := &row{
			Message: &msg.Message{ChatJID: dm, Sender: "telegram:7", Verb: msg.VerbMessage, Content: text},
			known:   true, answer: routeapi.Answer{Home: "main"},
		}
		for _, f := range change {
			f(r)
		}
		return r
	}
	operator := func(r *row) { r.Sender = "telegram:9" }
	for _, tt := range []struct {
		name string
		r    *row
		want *prefixTarget
	}{
		{"a child of the group", of("@eng go"), &prefixTarget{folder: "main/eng", rest: "go", reason: msg.ReasonPrefixGroup}},
		{"a topic", of("#fix go"), &prefixTarget{folder: "main", topic: "#fix", rest: "go", reason: msg.ReasonPrefixTopic}},
		{"no group of that name", of("@sales go"), nil},
		{"out of reach", of("@main/eng go", func(r *row) { r.answer.Home = "other" }), nil},
		{"in reach of an operator", of("@main/eng go", operator, func(r *row) { r.answer.Home = "other" }),
			&prefixTarget{folder: "main/eng", rest: "go", reason: msg.ReasonPrefixGroup}},
		{"in a chat without a group", of("@eng go", func(r *row) { r.answer.Home = "" }), nil},
		{"a reaction", of("@eng go", func(r *row) { r.Verb = msg.VerbReaction }), nil},
		{"a command", of("@eng go", func(r *row) { r.command = &layers.Command{} }), nil},
		{"an edit that fires", of("@eng go", func(r *row) { r.Verb, r.change = msg.VerbEdit, &change{fires: true} }),
			&prefixTarget{folder: "main/eng", rest: "go", reason: msg.ReasonPrefixGroup}},
		{"an edit that does not", of("@eng go", func(r *row) { r.Verb, r.change = msg.VerbEdit, &change{} }), nil},
		{"a bare token", of("@eng"), nil},
	} {
		got := h.g.findPrefix(t.Context(), tt.r)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestPinOf(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, tt := range []struct {
		name   string
		text   string
		change func(*row, *msg.Chat)
		folder string
		ok     bool
	}{
		{"a group", "@eng", nil, "main/eng", true},
		{"no group of that name", "@sales", nil, "", false},
		{"a topic", "#fix", nil, "", true},
		{"the reset of a group", "@", nil, "", true},
		{"a reset in a chat without group or pin", "@", func(r *row, _ *msg.Chat) { r.answer.Home = "" }, "", false},
		{"the reset of a pin to a group that is gone", "@", func(r *row, c *msg.Chat) { r.answer.Home, c.StickyGroup = "", "gone" }, "", true},
		{"a topic in a chat without a group", "#fix", func(r *row, _ *msg.Chat) { r.answer.Home = "" }, "", false},
		{"of a sender whom routes ignore", "#fix", func(r *row, _ *msg.Chat) { r.answer.Reason = msg.ReasonBuiltinDrop }, "", false},
		{"while routd is down", "#fix", func(r *row, _ *msg.Chat) { r.known = false }, "", false},
		{"text", "#fix it", nil, "", false},
	} {
		r := &row{
			Message: &msg.Message{ChatJID: dm, Sender: "telegram:7", Verb: msg.VerbMessage, Content: tt.text},
			known:   true, answer: routeapi.Answer{Home: "main"},
		}
		info := &msg.Chat{JID: dm}
		if tt.change != nil {
			tt.change(r, info)
		}
		d := &decider{g: h.g, batch: &batch{info: info}}
		if p, ok := d.pinOf(t.Context(), r); ok != tt.ok || p.folder != tt.folder && ok {
			t.Errorf("%s: %+v, %v", tt.name, p, ok)
		}
	}
}
