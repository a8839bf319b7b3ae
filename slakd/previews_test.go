package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// work is a turn that answers Alice in a thread of the channel.
type work struct {
	*harness
	thread fake.Place
	turn   *msg.Turn
	run    *msg.Run
	said   int64 // when the last progress was stored
}

// asks makes Alice ask in a new thread, and an agent work on that.
func (r *harness) asks() *work {
	r.t.Helper()
	w := &work{harness: r, thread: r.team.Thread(r.team.Say(r.alice, "go").TS)}
	row := &msg.Message{ChatJID: "slack:" + r.team.ChannelID, PlatformID: w.thread.ThreadTS, Direction: msg.In, Sender: "slack:" + r.alice.ID, Timestamp: 1, ReceivedAt: 1}
	now := time.Now().Add(-time.Minute).UnixMilli() // as if it had worked for a while
	r.write(func(tx *store.Tx) (err error) {
		w.turn = &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: row.ChatJID, ThreadID: w.thread.ThreadTS, Topic: w.thread.ThreadTS, Place: w.thread.ThreadTS, CreatedAt: now}
		if w.turn.TriggerMessageID, _, err = tx.PutMessage(row); err == nil {
			_, err = tx.PutTurn(w.turn, 0)
		}
		if err == nil {
			w.run = &msg.Run{Folder: "main", Topic: w.turn.Topic, ChatJID: row.ChatJID, ThreadID: w.thread.ThreadTS, StartedAt: now}
			err = tx.StartRun(w.run, w.turn.ID)
		}
		return err
	})
	return w
}

// says stores what the agent has written so far.
func (w *work) says(text string) {
	w.t.Helper()
	w.said = max(w.said+1, time.Now().UnixMilli())
	w.write(func(tx *store.Tx) error {
		return tx.PutProgress(*w.run, w.turn.ID, &store.Progress{State: agentproto.StatusRunning, Text: text, UpdatedAt: w.said})
	})
}

func (w *work) answers(text string) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		return tx.AnswerTurn(store.Reply{RunID: w.run.ID, TurnID: w.turn.ID, Text: text, Final: true, Sender: "agent:main"}, time.Now().UnixMilli())
	})
}

// streams waits until a stream in the thread shows a text, and returns its ts.
func (w *work) streams(text string) (ts string) {
	w.t.Helper()
	w.until("the stream shows "+text, func() bool {
		for _, m := range w.thread.Messages() {
			if stream, is := w.thread.Stream(m.TS); is && stream.Text == text {
				ts = m.TS
				return true
			}
		}
		return false
	})
	return ts
}

// shows waits until the bot's messages in the thread are these.
func (w *work) shows(want ...string) {
	w.t.Helper()
	var got []string
	w.until("the thread shows "+strings.Join(want, ", "), func() bool {
		got = nil
		for _, m := range w.thread.Messages() {
			if m.BotID != "" {
				got = append(got, m.Text)
			}
		}
		return cmp.Equal(got, want)
	})
}

// over waits until the turn has no open preview.
func (w *work) over() {
	w.t.Helper()
	w.until("no preview is open", func() bool {
		open, err := w.store.OpenPreviews(w.t.Context(), "slack")
		if err != nil {
			w.t.Fatal(err)
		}
		return len(open) == 0
	})
}

func TestPreview_StreamBecomesTheAnswer(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	w := r.asks()
	w.says("Half of")
	ts := w.streams("Half of")
	w.says("Half of the *answer*")
	w.streams("Half of the *answer*")
	w.answers("Half of the *answer*, and the rest")
	w.shows("Half of the _answer_, and the rest")
	w.over()
	w.until("the message is the answer's", func() bool {
		m, err := w.store.MessageByPlatformID(t.Context(), w.turn.ChatJID, ts)
		return err == nil && m != nil && m.OutState == msg.OutSent && m.TurnID == w.turn.ID
	})
	rows := w.messages(w.team)
	r.team.Thread(w.thread.ThreadTS).Say(r.alice, "thanks") // what the bot did makes no rows
	r.confirmed()
	if n := len(r.messages(r.team)) - len(rows); n != 1 {
		t.Errorf("%d rows more", n)
	}
}

// A restart in the middle of a turn, after which Slack may have ended the stream, still ends in one message.
func TestPreview_Restart_OneAnswer(t *testing.T) {
	for name, meanwhile := range map[string]func(w *work, ts string){
		"answered while down": func(w *work, _ string) { w.answers("whole") },
		"stream ended by Slack": func(w *work, _ string) {
			w.ExpireStreams()
			w.answers("whole")
		},
		"still working": func(*work, string) {},
		"message deleted": func(w *work, ts string) {
			w.thread.Remove(ts)
			w.answers("whole")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, stop := newReadUp(t, fake.Options{})
			w := r.asks()
			w.says("half")
			ts := w.streams("half")
			stop()
			meanwhile(w, ts)
			r.start()
			if name == "still working" {
				w.says("half and more")
				w.shows("half and more")
				w.answers("whole")
			}
			w.shows("whole")
			w.over()
		})
	}
}

// What a turn leaves that ends without an answer is deleted.
func TestPreview_TurnDies_Removed(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	w := r.asks()
	w.says("half")
	w.streams("half")
	w.write(func(tx *store.Tx) error { return tx.CancelTurn(w.turn.ID, msg.ReasonRoute, 1) })
	w.shows()
	w.over()

	w = r.asks()
	w.says("half")
	w.streams("half")
	stop()
	w.write(func(tx *store.Tx) error { return tx.CancelTurn(w.turn.ID, msg.ReasonRoute, 1) })
	r.start()
	w.shows()
	w.over()
}

// A preview whose message has no stored id, after a crash, is given up: the turn gets another, which becomes the answer.
func TestPreview_CrashBeforeItsIDIsStored_AnotherBecomesTheAnswer(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	stop() // first: a running slakd would soon say that the agent works, in a preview of its own
	w := r.asks()
	w.write(func(tx *store.Tx) error { _, err := tx.BeginPreview(w.turn.ID, time.Now().UnixMilli()); return err })
	w.says("half")
	r.start()
	w.streams("half") // of a new preview
	w.answers("whole")
	w.shows("whole")
	w.over()
}
