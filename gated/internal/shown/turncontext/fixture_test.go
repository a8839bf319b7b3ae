package turncontext

import (
	"fmt"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const group = "acme/eng"

// start is the time of the first row; each further one is a minute later.
var start = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// fixture is a database and a run of one place of a chat.
type fixture struct {
	t      *testing.T
	st     *store.Store
	reader Reader
	jid    string
	thread string
	topic  string // in chats without threads
	minute int
	shown  Shown
	own    map[int64]bool // turns of the run
}

func newFixture(t *testing.T, jid string, kind msg.ChatKind, thread string) *fixture {
	t.Helper()
	f := &fixture{t: t, st: storetest.Open(t), jid: jid, thread: thread, own: map[int64]bool{}}
	f.reader = Reader{Store: f.st.Reader, Location: time.UTC, Files: groupfiles.InboxPaths, Operators: map[string]bool{"x:carol": true}}
	f.shown.Own = func(turn int64) bool { return f.own[turn] }
	f.write(func(tx *store.Tx) error {
		if err := tx.PutChat("discord:5", msg.ChatChannel, "builds", 1); err != nil {
			return err
		}
		return tx.PutChat(jid, kind, "Room", 1)
	})
	return f
}

func (f *fixture) write(fn func(*store.Tx) error) {
	f.t.Helper()
	if err := f.st.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) now() int64 { return start.Add(time.Duration(f.minute) * time.Minute).UnixMilli() }

// row is a message of a user in the place. Its platform id is text if id is "".
func (f *fixture) row(name, id, replyTo, text string) *msg.Message {
	f.minute++
	if id == "" {
		id = fmt.Sprint("p", f.minute)
	}
	m := &msg.Message{
		ChatJID: f.jid, PlatformID: id, Direction: msg.In, Sender: "x:" + name, SenderName: name, Content: text, ThreadID: f.thread, Topic: f.topic,
		ReplyToID: replyTo, Timestamp: f.now(), ReceivedAt: f.now(), Source: "test",
	}
	if replyTo != "" {
		m.Verb = msg.VerbReply
	}
	return m
}

// put stores a row; an inbound one is decided.
func (f *fixture) put(m *msg.Message, d store.Decision) *msg.Message {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil || m.Direction == msg.Out {
			return err
		}
		d.RoutedTo, d.Topic, d.ThreadID = group, m.Topic, m.ThreadID
		return tx.Decide(m.ID, d, f.now())
	})
	return m
}

// say stores a message that fires no turn.
func (f *fixture) say(name, id, replyTo, text string) *msg.Message {
	f.t.Helper()
	return f.put(f.row(name, id, replyTo, text), store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve})
}

// elsewhere stores a message of another chat of the group.
func (f *fixture) elsewhere(text string) {
	f.t.Helper()
	m := f.row("Dan", "", "", text)
	m.ChatJID, m.ThreadID, m.Topic = "discord:5", "", ""
	f.put(m, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve})
}

// turn stores a turn of rows. Its answer opens a thread if opens is set.
func (f *fixture) turn(opens bool, list ...*msg.Message) *msg.Turn {
	f.t.Helper()
	t := &msg.Turn{Kind: msg.Conversation, Folder: group, ChatJID: f.jid, ThreadID: f.thread, Topic: f.topic, Place: f.topic, CreatedAt: f.now()}
	if f.thread != "" {
		t.Place, t.Topic = f.thread, f.thread
	}
	chat, err := f.st.Chat(f.t.Context(), f.jid)
	if err != nil {
		f.t.Fatal(err)
	}
	surface := msg.SurfaceOf(f.jid, chat.Kind, f.thread)
	t.Surface, t.Ceiling = surface.Name, surface.Ceiling
	f.write(func(tx *store.Tx) error {
		for _, m := range list {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			t.TriggerMessageID, t.ReplyTo = m.ID, m.PlatformID
		}
		if opens {
			t.ThreadID, t.Topic, t.Place = t.ReplyTo, t.ReplyTo, t.ReplyTo
		}
		if _, err := rows.PutTurn(tx, t, 5); err != nil {
			return err
		}
		for _, m := range list {
			d := store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: group, TurnID: t.ID, Topic: t.Topic, ThreadID: t.ThreadID}
			if err := tx.Decide(m.ID, d, f.now()); err != nil {
				return err
			}
		}
		return nil
	})
	return t
}

// prompt makes the next prompt of the run.
func (f *fixture) prompt(t *msg.Turn, events ...string) string {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		for _, event := range events {
			if err := tx.PutSystemMessage(group, "gated", event, "About "+event+".", f.now()); err != nil {
				return err
			}
		}
		return rows.ClaimSystemMessages(tx, group, t.ID)
	})
	facts, err := rows.ReadPromptFacts(f.t.Context(), f.st.Reader, t, 0, f.shown.Upto, f.shown.Through)
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := f.reader.Read(f.t.Context(), Request{
		Turn: t, Facts: facts, Shown: f.shown, NewSession: !f.shown.Prompted, Moment: Now(time.UnixMilli(f.now())),
		Group: groupconfig.Config{AssistantName: "ari", Observe: groupconfig.ObserveShared},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.shown.Add(&p)
	f.own[t.ID] = true
	return p.Text
}

// answer stores the answer to a turn.
func (f *fixture) answer(t *msg.Turn, id, text string) {
	f.t.Helper()
	f.answerWith(t, &msg.Message{PlatformID: id, Content: text})
}

func (f *fixture) answerWith(t *msg.Turn, m *msg.Message) {
	f.t.Helper()
	f.minute++
	m.ChatJID, m.ThreadID, m.Topic, m.ReplyToID, m.TurnID = f.jid, t.ThreadID, t.Topic, t.ReplyTo, t.ID
	m.Direction, m.Sender, m.SenderName, m.IsBot, m.Source = msg.Out, msg.AgentSender(group), "ari", true, msg.SourceAgent
	m.OutState, m.Timestamp, m.ReceivedAt = msg.OutSent, f.now(), f.now()
	f.put(m, store.Decision{})
}
