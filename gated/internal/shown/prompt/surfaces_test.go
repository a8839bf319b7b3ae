package prompt

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// surfaces are the places where a reply may be read, one chat for each.
var surfaces = []struct {
	jid    string
	kind   msg.ChatKind
	thread string
}{
	{"slack:C0ABC", msg.ChatChannel, ""},
	{"slack:C0ABC", msg.ChatChannel, "1716.2"},
	{"slack:D0ABC", msg.ChatDM, ""},
	{"slack:D0ABC", msg.ChatDM, "1716.2"},
	{"telegram:42", msg.ChatDM, ""},
	{"telegram:-1001234", msg.ChatGroup, ""},
	{"telegram:-1001234", msg.ChatGroup, "7"},
	{"discord:dm-9", msg.ChatDM, ""},
	{"discord:9", msg.ChatChannel, ""},
	{"discord:9", msg.ChatChannel, "77"},
	{"web:acme", msg.ChatWeb, ""},
	{"group:acme/eng", msg.ChatInternal, ""},
	{"matrix:room", msg.ChatGroup, ""},
}

// combinations are the blocks beside a message, alone and together.
var combinations = []struct {
	name string
	add  func(in *Input, last *msg.Message)
}{
	{"message", func(*Input, *msg.Message) {}},
	{"system", func(in *Input, _ *msg.Message) {
		in.System = []SystemLine{{"gated", "new_session", "This is the first session of this topic."}}
	}},
	{"observed", func(in *Input, _ *msg.Message) {
		in.Observed = []*msg.Message{{ID: 2, ChatJID: "discord:5", Sender: "discord:6", SenderName: "Dan", Content: "the build is red", Timestamp: noon}}
		in.ObservedLeft, in.ChatTitles = 3, map[string]string{"discord:5": "builds"}
	}},
	{"window", func(in *Input, _ *msg.Message) {
		in.ChannelContext = "[recent channel context]\n\nthread (you, ari):\n  you: <b>?\n  ari: 1 & 2\n"
	}},
	{"reply_chain", func(in *Input, last *msg.Message) {
		in.ReplyChain = []*msg.Message{{ID: 4, ChatJID: in.Turn.ChatJID, PlatformID: "p4", Sender: "x:9", SenderName: "Carol", Content: "who deploys?", Timestamp: noon}}
		in.RowIDs, last.Verb, last.ReplyToID = map[string]int64{"p4": 4}, msg.VerbReply, "p4"
	}},
	{"quoted", func(_ *Input, last *msg.Message) { last.Quote = "the \"second\"\nparagraph" }},
	{"attachments", func(_ *Input, last *msg.Message) {
		last.Attachments = []msg.Attachment{{Path: "inbox/7-1-cat.jpg", Name: "cat.jpg", MIME: "image/jpeg", Size: 5}, {Name: "film.mkv", Error: "too large"},
			{Path: "inbox/7-3-voice.ogg", Name: "voice.ogg", MIME: "audio/ogg", Size: 9000, Duration: 12}}
	}},
	{"edit_note", func(in *Input, last *msg.Message) {
		note := *last
		note.ID, note.Verb, note.TargetID, note.Content, note.Disposition = 6, msg.VerbEdit, "p5", "I meant that", msg.Observed
		in.RowIDs, in.Messages = map[string]int64{"p5": 5}, []*msg.Message{&note, last}
	}},
	{"deletion", func(in *Input, last *msg.Message) {
		last.Verb, last.TargetID, last.Content = msg.VerbDelete, "p5", ""
		in.RowIDs = map[string]int64{"p5": 5}
	}},
	{"reaction", func(in *Input, last *msg.Message) {
		last.Verb, last.TargetID, last.Content = msg.VerbReaction, "p5", "👍"
		in.RowIDs = map[string]int64{"p5": 5}
	}},
	{"delegated", func(in *Input, last *msg.Message) {
		last.ChatJID, last.Sender, last.SenderName = "group:acme/eng", "agent:acme", "acme"
		last.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, Folder: "acme", ChatJID: in.Turn.ChatJID}
		in.Turn.Kind, in.Turn.Topic = msg.Delegated, "#d7"
	}},
	{"operator", func(in *Input, last *msg.Message) { in.Operators = map[string]bool{last.Sender: true} }},
}

// on is the input of one message in a chat.
func on(jid string, kind msg.ChatKind, thread string) Input {
	platform, room := msg.SplitJID(jid)
	surface := msg.SurfaceOf(jid, kind, thread)
	row := &msg.Message{
		ID: 7, ChatJID: jid, PlatformID: "p7", ThreadID: thread, Sender: platform + ":1", SenderName: "Alice", Verb: msg.VerbMessage,
		Content: "what's for lunch?", Timestamp: noon,
	}
	return Input{
		Kind: kind, Title: "Room " + room, Messages: []*msg.Message{row},
		Turn: &msg.Turn{
			ChatJID: jid, ThreadID: thread, Topic: thread, Place: thread, Folder: "acme/eng", Surface: surface.Name, Ceiling: surface.Ceiling,
		},
	}
}

// TestBuild_Surfaces has a golden file per surface, with each combination of blocks.
func TestBuild_Surfaces(t *testing.T) {
	names := map[string]bool{}
	for _, s := range surfaces {
		name := msg.SurfaceOf(s.jid, s.kind, s.thread).Name
		if names[name] {
			t.Fatalf("%s twice", name)
		}
		names[name] = true
		var b strings.Builder
		for _, c := range combinations {
			in := on(s.jid, s.kind, s.thread)
			c.add(&in, in.Messages[0])
			b.WriteString("=== " + c.name + "\n" + Build(in))
		}
		all := on(s.jid, s.kind, s.thread)
		for _, name := range []string{"system", "observed", "window", "reply_chain", "quoted", "attachments", "operator"} {
			for _, c := range combinations {
				if c.name == name {
					c.add(&all, all.Messages[0])
				}
			}
		}
		b.WriteString("=== together\n" + Build(all))
		golden.Compare(t, filepath.Join("testdata", "surface_"+name+".txt"), b.String())
	}
}

func TestBuild_TitlesAndQuotesAreBounded(t *testing.T) {
	in := on("telegram:-1", msg.ChatGroup, "")
	in.Title = strings.Repeat("ä", 5000)
	in.Messages[0].Quote = strings.Repeat("é", 50_000)
	in.Observed = []*msg.Message{{ChatJID: "telegram:-2"}}
	in.ChatTitles = map[string]string{"telegram:-2": in.Title}
	text := Build(in)
	if len(text) > maxQuote+2*2*maxTitle+1500 || !utf8.ValidString(text) {
		t.Errorf("%d bytes", len(text))
	}
	if n := strings.Count(text, "ä"); n != 2*(maxTitle-1) {
		t.Errorf("%d characters of titles", n)
	}
}
