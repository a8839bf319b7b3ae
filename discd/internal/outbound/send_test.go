package outbound

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// senderFixture is a fixture with a Sender, at a time that the test sets.
type senderFixture struct {
	*fixture
	*Sender
	time time.Time
	base string
}

func newSenderFixture(t *testing.T) *senderFixture {
	b := &senderFixture{time: time.UnixMilli(1795262400000)}
	b.fixture = newFixtureAt(func() time.Time { return b.time })
	b.start(t)
	return b
}

// start makes the Sender.
func (b *senderFixture) start(t *testing.T) {
	t.Helper()
	base, err := b.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.base = base
	b.Sender = &Sender{Identity: first, API: discordapi.NewClient(base, b.Token(), adapter.NewCallClient()), Data: t.TempDir(), Store: storetest.Open(t), Now: func() time.Time { return b.time }}
}

// row makes a row for the channel, and returns it with its only part.
func (b *senderFixture) row(t *testing.T, m msg.Message) (*msg.Message, adapter.Part) {
	t.Helper()
	m.ChatJID, m.Direction, m.Source, m.ReceivedAt, m.OutState = b.address(b.channel.ChannelID), msg.Out, msg.SourceAgent, b.time.UnixMilli(), msg.OutQueued
	if _, _, err := storetest.Put(t.Context(), b.Store, &m); err != nil {
		t.Fatal(err)
	}
	parts, err := b.Cut(&m)
	if err != nil || len(parts) != 1 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	return &m, parts[0]
}

// made counts the messages that the bot made.
func (b *senderFixture) made() (n int) {
	for _, c := range b.Sent() {
		if c.Route == fake.CreateMessage {
			n++
		}
	}
	return n
}

func (b *senderFixture) send(t *testing.T, m *msg.Message, p adapter.Part) (id string) {
	t.Helper()
	id, err := adaptertest.Send(t.Context(), b, m, p)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// find searches for a part and compares the result.
func (b *senderFixture) find(t *testing.T, m *msg.Message, p adapter.Part, want string, messages int) {
	t.Helper()
	id, err := b.Find(t.Context(), m, p)
	if err != nil || id != want || b.made() != messages {
		t.Errorf("found %q, %v, want %q; %d messages, want %d", id, err, want, b.made(), messages)
	}
}

// kinds are rows of each kind that makes a message.
func (b *senderFixture) kinds(t *testing.T) map[string]msg.Message {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.Data, "cat.jpg"), []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	cat := []msg.Attachment{{Name: "cat.jpg", Path: "cat.jpg"}}
	return map[string]msg.Message{
		"text":         {Content: " **hello** "},
		"reply":        {Content: "hello", ReplyToID: b.channel.Messages()[0].ID},
		"file":         {Kind: msg.KindFile, Attachments: cat},
		"more text":    {Content: "look"},
		"file, text":   {Kind: msg.KindFile, Attachments: cat, Content: "look"},
		"poll":         {Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"]}`},
		"another poll": {Kind: msg.KindPoll, Content: `{"question":"Dinner?","options":["yes","no"]}`},
	}
}

// A preview that is loaded late would bring back the text from before an edit: no message has previews.
func TestSend_LatePreview_KeepsTheEdit(t *testing.T) {
	b := newSenderFixture(t)
	row, part := b.row(t, msg.Message{Content: "see https://example.org/a"})
	sent := b.send(t, row, part)
	taken := b.begun(t)
	before := []fake.Message{*b.message(sent), *b.message(taken)}
	edit, part := b.row(t, msg.Message{Kind: msg.KindEdit, TargetID: sent, Content: "see https://example.org/b"})
	b.send(t, edit, part)
	row, part = b.row(t, msg.Message{Content: "see https://example.org/b"})
	part, _ = b.TakeOver(part, taken)
	b.send(t, row, part)
	for _, m := range before {
		b.channel.UnfurlLate(m, fake.Embed{Type: "link", Title: "a"})
		if now := b.message(m.ID); now.Content != "see https://example.org/b" || len(now.Embeds) > 0 {
			t.Errorf("%q has become %q with %d previews", m.Content, now.Content, len(now.Embeds))
		}
	}
}

// While Discord knows the nonce, Find sends the part again.
func TestFind_WithinNonceLifetime_SendsAgain(t *testing.T) {
	b := newSenderFixture(t)
	n := 0
	for name, m := range b.kinds(t) {
		t.Run(name, func(t *testing.T) {
			row, part := b.row(t, m)
			id := b.send(t, row, part)
			n++
			b.time = b.time.Add(nonceLifetime - time.Millisecond)
			b.find(t, row, part, id, n)
			lost, part := b.row(t, m)
			id, err := b.Find(t.Context(), lost, part)
			if n++; err != nil || id == "" || b.made() != n {
				t.Errorf("one that never arrived: %q, %v; %d messages, want %d", id, err, b.made(), n)
			}
			b.find(t, lost, part, id, n)
		})
	}
}

func TestFind_AfterNonceLifetime_SearchesChannel(t *testing.T) {
	for name := range newSenderFixture(t).kinds(t) {
		t.Run(name, func(t *testing.T) {
			b := newSenderFixture(t)
			m := b.kinds(t)[name]
			before, part := b.row(t, m)
			b.settle(t, before, b.send(t, before, part))
			row, part := b.row(t, m)
			b.channel.Say(b.Users()[0], before.Content) // a user writes the same text
			for other, m := range b.kinds(t) {
				if other != name {
					row, part := b.row(t, m)
					b.send(t, row, part)
				}
			}
			b.time = b.time.Add(time.Hour)
			n := b.made()
			b.find(t, row, part, "", n)
			id := b.send(t, row, part)
			b.time = b.time.Add(time.Hour)
			for range 2 * discordapi.MaxPage {
				b.channel.Say(b.Users()[0], "and so on")
			}
			b.find(t, row, part, id, n+1)
		})
	}
}

// Their records tell them apart.
func TestFind_PartsWithEqualText_AreNotConfused(t *testing.T) {
	b := newSenderFixture(t)
	m := &msg.Message{
		ChatJID: b.address(b.channel.ChannelID), Direction: msg.Out, OutState: msg.OutQueued, ReceivedAt: b.time.UnixMilli(),
		Content: strings.Repeat("x", 2*(maxText-markRoom)),
	}
	if _, _, err := storetest.Put(t.Context(), b.Store, m); err != nil {
		t.Fatal(err)
	}
	parts, err := b.Cut(m)
	if err != nil || len(parts) != 2 || parts[0].(call).body["content"] != parts[1].(call).body["content"] {
		t.Fatalf("%v, %v", parts, err)
	}
	first := b.send(t, m, parts[0])
	err = b.Store.Write(t.Context(), func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(m.ID, 2, 1); err != nil {
			return err
		}
		return tx.PutDelivery(store.Delivery{MessageID: m.ID, State: msg.OutSent, PlatformID: first}, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.time = b.time.Add(time.Hour)
	b.find(t, m, parts[1], "", 1)
	second := b.send(t, m, parts[1])
	b.find(t, m, parts[1], second, 2)
}

// Users are the members of the channel.
func (b *senderFixture) Users() []fake.User { return b.channel.Members() }

// settle records a row as sent.
func (b *senderFixture) settle(t *testing.T, m *msg.Message, id string) {
	t.Helper()
	err := b.Store.Write(t.Context(), func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(m.ID, 1, m.ReceivedAt); err != nil {
			return err
		}
		return tx.SettleOutbound(m.ID, msg.OutSent, id)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFind_Uncertain_Fails(t *testing.T) {
	b := newSenderFixture(t)
	row, part := b.row(t, msg.Message{Content: "hello"})
	b.time = b.time.Add(time.Hour)
	for range 11 * discordapi.MaxPage {
		b.channel.Say(b.Users()[0], "and so on")
	}
	fails := func(what string, m *msg.Message, class msg.ErrorClass, why string) {
		t.Helper()
		var f *adapter.Failure
		id, err := b.Find(t.Context(), m, part)
		if !errors.As(err, &f) || f.Class != class || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %q, %v, want %s", what, id, err, class)
		}
	}
	fails("after many messages", row, msg.Permanent, "more than 1000 messages")
	b.InjectFault(fake.Fault{Route: fake.GetMessages, RetryAfter: time.Second})
	fails("too often", row, msg.Rate, "429")
	b.time = b.time.Add(time.Second)
	b.API = discordapi.NewClient(b.base, b.Token(), adapter.NewCallClient()) // which forgets the rate limit
	b.channel.Deny(fake.ReadMessageHistory)
	fails("unseen", row, msg.Permanent, "Read Message History")
	b.InjectFault(fake.Fault{Route: fake.GetCurrentUser, Status: 503})
	fails("while Discord is down", row, msg.Ambiguous, "503")
	fresh, _ := b.row(t, msg.Message{Content: "hello"})
	b.InjectFault(fake.Fault{Route: fake.CreateMessage, Status: 503})
	fails("while Discord is down, sooner", fresh, msg.Ambiguous, "503")
	b.time = b.time.Add(-time.Second) // before the row was made
	fails("with a clock set back", fresh, msg.Permanent, "Read Message History")
}

// Send then returns the error.
func TestFind_SendForbidden_FindsNothing(t *testing.T) {
	b := newSenderFixture(t)
	row, part := b.row(t, msg.Message{Content: "hello"})
	b.channel.Deny(fake.SendMessages)
	b.find(t, row, part, "", 0)
	var f *adapter.Failure
	if _, err := adaptertest.Send(t.Context(), b, row, part); !errors.As(err, &f) || f.Class != msg.Permanent {
		t.Errorf("%v", err)
	}
}

func TestCall_Repeatable_MayBeRepeated(t *testing.T) {
	b := newSenderFixture(t)
	sent, part := b.row(t, msg.Message{Content: "hello"})
	id := b.send(t, sent, part)
	for _, m := range []msg.Message{
		{Kind: msg.KindEdit, TargetID: id, Content: "hello you"}, {Kind: msg.KindReaction, TargetID: id, Content: "👍"},
		{Kind: msg.KindReaction, TargetID: id, Content: "-👍"}, {Kind: msg.KindDelete, TargetID: id}, {Kind: msg.KindDelete, TargetID: id},
	} {
		row, part := b.row(t, m)
		if !part.(call).Repeatable() {
			t.Errorf("%s is not repeatable", m.Kind)
		}
		b.send(t, row, part)
		if part.(call).method != http.MethodDelete || m.Kind == msg.KindReaction {
			b.send(t, row, part)
		}
	}
	if slices.ContainsFunc(b.channel.Messages(), func(m fake.Message) bool { return m.ID == id }) {
		t.Error("the message is still there")
	}
}

func TestSend_ReplyRefused_SendsWithoutReference(t *testing.T) {
	for _, refusal := range []fake.Fault{
		{Status: 400, Code: historyForbidden, Message: "Cannot reply without permission to read message history"},
		{Status: 400, Body: `{"code":50035,"message":"Invalid Form Body","errors":{"message_reference":{"_errors":[{"code":"REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE"}]}}}`},
	} {
		b := newSenderFixture(t)
		row, part := b.row(t, msg.Message{Content: "hello", ReplyToID: b.channel.Messages()[0].ID})
		refusal.Route = fake.CreateMessage
		b.InjectFault(refusal)
		var remark *adapter.Remark
		if id, err := adaptertest.Send(t.Context(), b, row, part); id == "" || !errors.As(err, &remark) {
			t.Errorf("%q, %v", id, err)
		}
		if sent := b.Sent(); len(sent) != 1 || sent[0].Text != "hello" || sent[0].ReplyTo != "" {
			t.Errorf("%+v", sent)
		}
		if part.(call).body["message_reference"] == nil {
			t.Error("Send changed the part")
		}
	}
}

func TestType_InChatAndThread(t *testing.T) {
	b := newSenderFixture(t)
	for _, lane := range []store.Lane{{ChatJID: b.address(b.dm.ChannelID)}, {ChatJID: b.address(b.channel.ChannelID), ThreadID: b.thread.ChannelID}} {
		if err := b.Type(t.Context(), lane, true); err != nil {
			t.Error(err)
		}
	}
	if len(b.dm.Typing()) != 1 || len(b.thread.Typing()) != 1 || len(b.channel.Typing()) != 0 {
		t.Error("the typing indicator is in the wrong channels")
	}
}

func TestSend_FileRefused_SendsText(t *testing.T) {
	for code, want := range map[int]string{
		tooLarge:     "The file `a.txt` is larger than Discord takes here.\n\nlook &copy;",
		noPermission: "Discord does not take the file `a.txt` here.\n\nlook &copy;",
		noUploads:    "Discord does not take the file `a.txt` here.\n\nlook &copy;",
	} {
		b := newSenderFixture(t)
		b.Data = t.TempDir()
		if err := os.WriteFile(filepath.Join(b.Data, "a.txt"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		row, part := b.row(t, msg.Message{Kind: msg.KindFile, Content: "look &amp;copy;", Attachments: []msg.Attachment{{Name: "a.txt", Path: "a.txt"}}})
		b.InjectFault(fake.Fault{Route: fake.CreateMessage, Status: 403, Code: code, Message: "refused"})
		var remark *adapter.Remark
		if id, err := adaptertest.Send(t.Context(), b, row, part); id == "" || !errors.As(err, &remark) {
			t.Errorf("%q, %v", id, err)
		}
		if sent := b.Sent(); len(sent) != 1 || sent[0].Text != want || len(sent[0].Files) > 0 {
			t.Errorf("%d: %+v, want %q", code, sent, want)
		}
	}
}

func TestSend_UnknownEmoji_TriesTheOtherSpelling(t *testing.T) {
	b := newSenderFixture(t)
	sent, part := b.row(t, msg.Message{Content: "hello"})
	id := b.send(t, sent, part)
	row, part := b.row(t, msg.Message{Kind: msg.KindReaction, TargetID: id, Content: "❤"})
	for range 2 {
		b.InjectFault(fake.Fault{Route: fake.CreateReaction, Status: 400, Code: unknownEmoji, Message: "Unknown Emoji"})
	}
	var f *adapter.Failure
	if _, err := adaptertest.Send(t.Context(), b, row, part); !errors.As(err, &f) || f.Class != msg.Permanent {
		t.Errorf("%v", err)
	}
	b.InjectFault(fake.Fault{Route: fake.CreateReaction, Status: 400, Code: unknownEmoji, Message: "Unknown Emoji"})
	if _, err := adaptertest.Send(t.Context(), b, row, part); err != nil {
		t.Error(err)
	}
}
