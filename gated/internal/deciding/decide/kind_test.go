package decide

import (
	"cmp"
	"testing"

	"arizuko/pkg/msg"
)

func TestNewRow_Kind(t *testing.T) {
	t.Parallel()
	from := func(kind msg.ReturnKind) *msg.ReturnAddress { return &msg.ReturnAddress{Kind: kind} }
	for name, tt := range map[string]struct {
		m    msg.Message
		want Kind
	}{
		"text":                    {msg.Message{Verb: msg.VerbMessage, Content: "hi"}, KindText},
		"mention":                 {msg.Message{Verb: msg.VerbMention, Content: "@ari hi"}, KindText},
		"reply":                   {msg.Message{Verb: msg.VerbReply, Content: "hi"}, KindText},
		"bare token":              {msg.Message{Verb: msg.VerbMessage, Content: "#fix"}, KindText},
		"injected text":           {msg.Message{Verb: msg.VerbMessage, Content: "hi", ForwardedFrom: from(msg.Injection)}, KindText},
		"command":                 {msg.Message{Verb: msg.VerbMessage, Content: "/stop"}, KindCommand},
		"command for us":          {msg.Message{Verb: msg.VerbMention, Content: "/stop@ari"}, KindCommand},
		"command for another bot": {msg.Message{Verb: msg.VerbMessage, Content: "/stop@other"}, KindText},
		"command of a bot":        {msg.Message{Verb: msg.VerbMessage, Content: "/stop", IsBot: true}, KindText},
		"late command":            {msg.Message{Verb: msg.VerbMessage, Content: "/stop", ReceivedAt: 5000}, KindText},
		"command with a file":     {msg.Message{Verb: msg.VerbMessage, Content: "/help", PendingFiles: 1}, KindText},
		"new with a file":         {msg.Message{Verb: msg.VerbMessage, Content: "/new", PendingFiles: 1}, KindCommand},
		"injected command":        {msg.Message{Verb: msg.VerbMessage, Content: "/new", ForwardedFrom: from(msg.Injection)}, KindCommand},
		"command of Slack":        {msg.Message{Verb: msg.VerbMessage, Content: "!new", ChatJID: "slack:C1"}, KindCommand},
		"on a further account":    {msg.Message{Verb: msg.VerbMessage, Content: "!new", ChatJID: "slack+work:C1"}, KindCommand},
		"Slack's sign elsewhere":  {msg.Message{Verb: msg.VerbMessage, Content: "!new", ChatJID: "telegram+work:5"}, KindText},
		"unknown command":         {msg.Message{Verb: msg.VerbMessage, Content: "/what"}, KindText},
		"reaction":                {msg.Message{Verb: msg.VerbReaction, Content: "/stop"}, KindEvent},
		"join":                    {msg.Message{Verb: msg.VerbJoin}, KindEvent},
		"verb to come":            {msg.Message{Verb: "wave"}, KindEvent},
		"edit":                    {msg.Message{Verb: msg.VerbEdit, Content: "/stop"}, KindChange},
		"deletion":                {msg.Message{Verb: msg.VerbDelete}, KindChange},
		"vote":                    {msg.Message{Verb: msg.VerbVote}, KindBallot},
		"end of a poll":           {msg.Message{Verb: msg.VerbPollEnd}, KindBallot},
		"pressed button":          {msg.Message{Verb: msg.VerbAnswer}, KindAnswer},
		"delegation":              {msg.Message{Verb: msg.VerbMessage, Content: "/stop", ForwardedFrom: from(msg.Delegation)}, KindForwarded},
		"answer of a group":       {msg.Message{Verb: msg.VerbMessage, ForwardedFrom: from(msg.Answer)}, KindForwarded},
	} {
		tt.m.ChatJID = cmp.Or(tt.m.ChatJID, chat)
		if r := NewRow(&tt.m, 1000, []string{"ari"}, nil); r.Kind != tt.want || (r.Command != nil) != (tt.want == KindCommand) {
			t.Errorf("%s: kind %d with command %+v, want %d", name, r.Kind, r.Command, tt.want)
		}
	}
}

// TestKind_WhoIsAsked: a row is decided on arrival or waits at the gate; routd is asked about the rows that it routes,
// and about the group of a command.
func TestKind_WhoIsAsked(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]struct{ acts, routed bool }{
		KindText: {false, true}, KindEvent: {false, true}, KindMention: {false, true}, KindForwarded: {false, false},
		KindCommand: {true, true}, KindChange: {true, false}, KindBallot: {true, false}, KindAnswer: {true, false},
		KindLeak: {true, false}, KindBroken: {true, false},
	} {
		r := row(1, "a", func(r *Row) { r.Kind = kind })
		if got := r.Lookup(&msg.Chat{}) != nil; kind.Acts() != want.acts || got != want.routed {
			t.Errorf("kind %d: acts %v, routd is asked %v", kind, kind.Acts(), got)
		}
	}
}
