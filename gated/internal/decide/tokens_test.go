package decide

import (
	"testing"

	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestFindPrefix(t *testing.T) {
	t.Parallel()
	of := func(text string, change ...func(*Row)) Row {
		return row(1, text, append([]func(*Row){func(r *Row) { r.Answer = routeapi.Answer{Home: "main"} }}, change...)...)
	}
	operator := func(r *Row) { r.Operator = true }
	elsewhere := func(r *Row) { r.Answer.Home = "other" }
	for _, tt := range []struct {
		name string
		r    Row
		want *Prefix
	}{
		{"a child of the group", of("@eng go"), &Prefix{Folder: "main/eng", Rest: "go", Reason: msg.ReasonPrefixGroup}},
		{"a topic", of("#fix go"), &Prefix{Folder: "main", Topic: "#fix", Rest: "go", Reason: msg.ReasonPrefixTopic}},
		{"no group of that name", of("@sales go"), nil},
		{"out of reach", of("@main/eng go", elsewhere), nil},
		{"in reach of an operator", of("@main/eng go", operator, elsewhere), &Prefix{Folder: "main/eng", Rest: "go", Reason: msg.ReasonPrefixGroup}},
		{"in a chat without a group", of("@eng go", func(r *Row) { r.Answer.Home = "" }), nil},
		{"a reaction", of("@eng go", verb(msg.VerbReaction)), nil},
		{"a command", of("@eng go", func(r *Row) { r.Command = &layers.Command{} }), nil},
		{"an edit that fires", of("@eng go", verb(msg.VerbEdit), change(Change{Fires: true})),
			&Prefix{Folder: "main/eng", Rest: "go", Reason: msg.ReasonPrefixGroup}},
		{"an edit that does not", of("@eng go", verb(msg.VerbEdit), change(Change{})), nil},
		{"a bare token", of("@eng"), nil},
		{"without routd's answer", of("@eng go", unanswered), nil},
	} {
		got := FindPrefix(&tt.r, registered)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestFindPin(t *testing.T) {
	t.Parallel()
	withoutHome := func(r *Row) { r.Answer.Home = "" }
	for _, tt := range []struct {
		name   string
		text   string
		change func(*Row)
		pinned string
		folder string
		ok     bool
	}{
		{"a group", "@eng", nil, "", "main/eng", true},
		{"no group of that name", "@sales", nil, "", "", false},
		{"a topic", "#fix", nil, "", "", true},
		{"the reset of a group", "@", nil, "", "", true},
		{"a reset in a chat without group or pin", "@", withoutHome, "", "", false},
		{"the reset of a pin to a group that is gone", "@", withoutHome, "gone", "", true},
		{"a topic in a chat without a group", "#fix", withoutHome, "", "", false},
		{"of a sender whom routes ignore", "#fix", ignored, "", "", false},
		{"of a bot", "#fix", func(r *Row) { r.IsBot = true }, "", "", false},
		{"that came too late", "#fix", func(r *Row) { r.Old = true }, "", "", false},
		{"while routd is down", "#fix", unanswered, "", "", false},
		{"text", "#fix it", nil, "", "", false},
	} {
		r := row(1, tt.text)
		if tt.change != nil {
			tt.change(&r)
		}
		p := FindPin(&r, &msg.Chat{JID: chat, StickyGroup: tt.pinned}, registered)
		if (p != nil) != tt.ok || p != nil && p.Folder != tt.folder {
			t.Errorf("%s: %+v", tt.name, p)
		}
	}
}
