package decide

import (
	"fmt"
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
		{"a command", of("@eng go", func(r *Row) { r.Kind, r.Command = KindCommand, &layers.Command{} }), nil},
		{"an edit that fires", of("@eng go", verb(msg.VerbEdit), change(Change{}), fires),
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

// TestStep_CommandOrToken_IsOursAlone: what is addressed to another bot is text, and nothing that comes with a command or
// token is swallowed.
func TestStep_CommandOrToken_IsOursAlone(t *testing.T) {
	t.Parallel()
	mention, reply := verb(msg.VerbMention), verb(msg.VerbReply)
	picture := func(r *Row) { r.PendingFiles = 1 }
	stored := func(r *Row) { r.Attachments = []msg.Attachment{{Path: "media/a.jpg"}} }
	answers := func(r *Row) { r.ReplyToID = "p9" }
	quotes := func(r *Row) { r.Verb, r.ReplyToID, r.Quote = msg.VerbReply, "p9", "the 9:40 train" }
	const (
		pinned = "1 sticky/sticky_topic; PinTopic{Row:1 Topic:#trip}; Reply{Row:1 Source:command Text:topic → trip}"
		inTrip = "1 prefix/prefix_topic main; turn main#trip [1=]"
		reset  = "1 command/command main; ResetSession{Row:1 Folder:main Topic:}; "
		stops  = "StopChat{Row:1 By:telegram:7 ThreadID: Topic: OneTopic:false Only: Except:[1] Own:false}; StopParked{Row:1 ThreadID: Sender:telegram:7}; " +
			"1 command/command; Reply{Row:1 Source:command Text:stopped"
	)
	for i, tt := range []struct {
		text   string
		change []func(*Row)
		want   string
	}{
		{"/new@weather_bot please. what do you think?", []func(*Row){mention}, "turn main [1]"},
		{"/stop@weather_bot", []func(*Row){mention}, "turn main [1]"},
		{"/new@ hi", []func(*Row){mention}, "turn main [1]"},
		{"/approve@weather_bot ABCD-1234", []func(*Row){mention, func(r *Row) { r.Sender = "telegram:9" }}, "turn main [1]"},
		{"/stop@ari", []func(*Row){mention}, stops + "}"},
		{"/stop@Ari", nil, stops + "}"},

		{"/new", []func(*Row){picture}, reset + "turn main [1=]"},
		{"/new", []func(*Row){stored}, reset + "turn main [1=]"},
		{"/new #trip", []func(*Row){picture}, "1 command/command main; ResetSession{Row:1 Folder:main Topic:#trip}; turn main#trip [1=]"},
		{"/new", []func(*Row){answers}, reset + "turn main [1=]"},
		{"/new", []func(*Row){reply, answers}, reset + "Reply{Row:1 Source:command Text:new session}"},
		{"/status", []func(*Row){picture}, "turn main [1]"},
		{"/why", []func(*Row){picture}, "turn main [1]"},
		{"/stop", []func(*Row){picture}, stops + textFileUnread + "}"},
		{"/stop", []func(*Row){answers}, stops + "}"},
		{"/status", []func(*Row){answers}, "AskService{Row:1 Service:dashd RouteID:0 Folder:main Operator:false}"},

		{"/new #d9 hello", nil, "1 command/command; Reply{Row:1 Source:command Text:" + textReserved + "}"},
		{"#d9", nil, "1 command/command; Reply{Row:1 Source:command Text:" + textReserved + "}"},
		{"#d9 hello", nil, "turn main [1]"},
		{"#d9", []func(*Row){picture}, "turn main [1]"},
		{"#trip", nil, pinned},
		{"#trip", []func(*Row){picture}, inTrip},
		{"#trip", []func(*Row){stored}, inTrip},
		{"#trip", []func(*Row){answers}, inTrip},
		{"#trip", []func(*Row){quotes}, inTrip},
		{"#trip", []func(*Row){reply, answers}, pinned},
		{"@eng", []func(*Row){picture}, "1 prefix/prefix_group main/eng; turn main/eng [1=]"},
		{"#", []func(*Row){picture}, "turn main [1]"},
		{"#", []func(*Row){answers}, "1 sticky/sticky_reset; PinTopic{Row:1 Topic:}; Reply{Row:1 Source:command Text:topic reset to default}"},
	} {
		r := row(1, tt.text, tt.change...)
		command(&r)
		_, effects := Step(State{}, facts(r))
		diff(t, fmt.Sprint(i, ": ", tt.text), said(effects), tt.want)
	}

	inThread := row(1, "#trip", func(r *Row) { r.ChatJID, r.ReplyToID, r.ThreadID = "slack:C1", "1.1", "1.1" })
	_, effects := Step(State{}, facts(inThread))
	diff(t, "in a thread of Slack, where every row replies to its first", said(effects), pinned)
}

func TestStep_NewWithAnAlbum_AsksAboutAllPictures(t *testing.T) {
	t.Parallel()
	picture := func(r *Row) { r.PendingFiles = 1 }
	f := facts(row(1, "/new", picture, keyed("album"), received(now-9000), command), row(2, "", picture, keyed("album"), received(now-9000)))
	_, effects := Step(State{}, f)
	diff(t, "effects", said(effects),
		"1 command/command main; ResetSession{Row:1 Folder:main Topic:}; 2 command/grouped main; turn main [1= 2=]")
}
