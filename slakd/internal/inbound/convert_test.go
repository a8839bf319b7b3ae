package inbound

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/inboundtest"
	"arizuko/pkg/msg"
)

var us = Self{Platform: "slack", User: "UBOT", Bot: "BBOT", UserApps: []string{"A77"}}

// names are those of the examples' workspace.
type names struct{}

func (names) User(id string) string {
	return map[string]string{
		"U1": "Ada", "U2": "Bob", "U7": "CI bot", "B9": "Nine", "UEVIL": "Eve\u202e\nmallory",
	}[id]
}

func (names) Person(id string) bool { return id == "U1" || id == "U2" }

func (names) Admin(id string) bool { return id == "U1" }

func (names) Chat(channel string) (msg.ChatKind, string) {
	switch channel {
	case "C1":
		return msg.ChatChannel, "#team"
	case "C2":
		return msg.ChatChannel, "#other"
	case "G9":
		return msg.ChatChannel, "#hush"
	case "C7":
		return msg.ChatGroup, "mpdm-ada--bob-1"
	case "D1":
		return msg.ChatDM, "Ada"
	}
	return "", ""
}

// example is an event and what it shows.
type example struct {
	What  string          `json:"what"`
	Why   string          `json:"why"` // it makes no row, or one without something
	Event json.RawMessage `json:"event"`
}

// payload is an event in its envelope.
func payload(event json.RawMessage) []byte {
	return []byte(`{"type":"event_callback","event_id":"Ev1","event_time":1764000001,"event":` + string(event) + `}`)
}

func convert(payload []byte) (adapter.Inbound, error) {
	e, err := Decode(payload)
	if err != nil {
		return adapter.Inbound{}, err
	}
	return Convert(e, us, names{})
}

func TestConvert_Events_GiveGoldenRows(t *testing.T) {
	inboundtest.Compare(t, func(t *testing.T, path string) (all []inboundtest.Result) {
		for _, e := range inboundtest.Read[example](t, path) {
			in, err := convert(payload(e.Event))
			all = append(all, inboundtest.Converted(e.What, e.Why, in, err))
		}
		return all
	})
}

// named is the result of an example.
func named(t *testing.T, file, what string) adapter.Inbound {
	t.Helper()
	for _, e := range inboundtest.Read[example](t, "testdata/"+file+".json") {
		if e.What == what {
			r, err := convert(payload(e.Event))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatalf("there is no %q in %s", what, file)
	return adapter.Inbound{}
}

// Slack sends two events for one message.
func TestConvert_MentionSentTwice_GivesTheSameRow(t *testing.T) {
	first, again := named(t, "mentions", "of us"), named(t, "mentions", "the same post, sent again")
	if diff := cmp.Diff(first, again); diff != "" || first.Messages[0].Verb != msg.VerbMention {
		t.Errorf("a %s (-first +again):\n%s", first.Messages[0].Verb, diff)
	}
}

func TestConvert_RepeatedActions_HaveDifferentIDs(t *testing.T) {
	for _, pair := range [][3]string{{"reactions", "given", "again, later"}, {"edits", "an edit", "another"}, {"reactions", "given", "taken back"}} {
		a, b := named(t, pair[0], pair[1]).Messages[0], named(t, pair[0], pair[2]).Messages[0]
		if a.PlatformID == b.PlatformID || a.TargetID != b.TargetID {
			t.Errorf("%s and %s: %s, %s", pair[1], pair[2], a.PlatformID, b.PlatformID)
		}
	}
}

func TestCommand_TextOfEachForm(t *testing.T) {
	for _, tt := range []struct{ command, text, want string }{
		{"/arizuko", "new hello <@U2|bob> &amp; co", "/new hello @Bob & co"},
		{"/arizuko", "/new hello", "/new hello"},
		{"/arizuko", " stop ", "/stop"},
		{"/arizuko", "", "/help"},
		{"/new", "#topic hello", "/new #topic hello"},
		{"/stop", "", "/stop"},
	} {
		r, err := Command(&slack.SlashCommand{Command: tt.command, Text: tt.text, ChannelID: "C1", UserID: "U1", TriggerID: "7.8.ab"}, us, names{})
		if err != nil {
			t.Fatal(err)
		}
		want := &msg.Message{
			ChatJID: "slack:C1", PlatformID: "slash:7.8.ab", Sender: "slack:U1", SenderName: "Ada",
			Verb: msg.VerbMessage, Content: tt.want, Addressed: true,
		}
		if diff := cmp.Diff(want, r.Messages[0]); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.command, tt.text, diff)
		}
	}
	for _, c := range []slack.SlashCommand{{}, {UserID: "U1", TriggerID: "7"}, {ChannelID: "C1", TriggerID: "7"}, {ChannelID: "C1", UserID: "U1"}} {
		if r, err := Command(&c, us, names{}); err == nil || r.Messages != nil {
			t.Errorf("%+v gives %+v", c, r)
		}
	}
}

// clicked is the payload of a click, with one of its parts replaced.
func clicked(old, by string) []byte {
	const click = `{"type":"block_actions","trigger_id":"7.8.ab","user":{"id":"U1","name":"ada"},"channel":{"id":"C1"},"message":{"ts":"1764000000.000100",
		"blocks":[{"type":42}]},"container":{"type":"message","message_ts":"1764000000.000100","channel_id":"C1"},
		"actions":[{"type":"button","action_id":"ask:5:2","value":"ask:5:2","action_ts":"1764000001.000200"}]}`
	return []byte(strings.Replace(click, old, by, 1))
}

func TestPress_Clicks_MakeRows(t *testing.T) {
	row := msg.Message{
		ChatJID: "slack:C1", PlatformID: "press:7.8.ab", TargetID: "1764000000.000100", Sender: "slack:U1", SenderName: "Ada",
		Verb: msg.VerbAnswer, Content: `{"ask":5,"option":2}`, Timestamp: 1764000001000,
	}
	inThread := row
	inThread.ThreadID, inThread.Topic = "1763000000.000100", "1763000000.000100"
	for name, tt := range map[string]struct {
		payload []byte
		want    *msg.Message
		err     bool
	}{
		"a button of a question": {clicked("", ""), &row, false},
		"in a thread":            {clicked(`"channel_id":"C1"`, `"channel_id":"C1","thread_ts":"1763000000.000100"`), &inThread, false},
		"first of a thread":      {clicked(`"message":{`, `"message":{"thread_ts":"1764000000.000100",`), &row, false},
		"another button":         {clicked(`"value":"ask:5:2"`, `"value":"vote"`), nil, false},
		"no button":              {clicked("block_actions", "view_submission"), nil, false},
		"nothing clicked":        {[]byte(`{"type":"block_actions"}`), nil, false},
		"without a user":         {clicked(`"id":"U1"`, `"id":""`), nil, true},
		"without a channel":      {clicked(`"channel_id":"C1"`, `"channel_id":""`), nil, true},
		"without a trigger":      {clicked("7.8.ab", ""), nil, true},
		"invalid message":        {clicked(`"message_ts":"1764000000.000100"`, `"message_ts":"x"`), nil, true},
		"invalid":                {[]byte(`[]`), nil, true},
	} {
		in, err := Press(tt.payload, us, names{})
		var got *msg.Message
		if len(in.Messages) > 0 {
			got = in.Messages[0]
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.err {
			t.Errorf("%s: %v, (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestConvert_HugeText(t *testing.T) {
	text := strings.Repeat("<@UBOT> 😀 <@U2> &amp; friends ", 20_000)
	r, err := Convert(&Event{Message: &Message{Channel: "C1", User: "U1", TS: "1764000001.000100", Text: text}}, us, names{})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Messages[0]; m.Verb != msg.VerbMention || strings.Count(m.Content, "@Bob &") != 20_000 || strings.Contains(m.Content, "UBOT") {
		t.Errorf("a %s with %d names left", m.Verb, strings.Count(m.Content, "@"))
	}
}

func FuzzConvert(f *testing.F) {
	for _, path := range inboundtest.Paths(f) {
		for _, e := range inboundtest.Read[example](f, path) {
			f.Add(payload(e.Event))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := inboundtest.CheckConversion(t, "slack", func() (adapter.Inbound, error) { return convert(text) })
		for _, m := range in.Messages {
			if m.ThreadID != "" && !isTS(m.ThreadID) {
				t.Errorf("thread %q", m.ThreadID)
			}
		}
	})
}

func TestAdmins(t *testing.T) {
	rows := []*msg.Message{
		{ChatJID: "slack:C1", Sender: "slack:U1"}, {ChatJID: "slack:C1", Sender: "slack:U2"},
		{ChatJID: "slack:C1", Sender: "slack:U9"}, {ChatJID: "slack:C1", Sender: "slack:U1", IsBot: true}, {ChatJID: "slack:D1", Sender: "slack:U1"},
	}
	want := []adapter.Admin{{ChatJID: "slack:C1", Sender: "slack:U1", Is: true}, {ChatJID: "slack:C1", Sender: "slack:U2"}}
	if diff := cmp.Diff(want, Admins(rows, names{})); diff != "" {
		t.Errorf("admins, of those who are known and no bots, in channels (-want +got):\n%s", diff)
	}
}
