// Package gatedtest makes turns, runs and answers in a store as gated does, for tests of other daemons.
package gatedtest

import (
	"cmp"
	"errors"
	"testing"

	"arizuko/gated/internal/rows"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Queued stores a turn for a new row, changed by set.
func Queued(t testing.TB, s *store.Store, set ...func(*msg.Turn)) *msg.Turn {
	t.Helper()
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: storetest.Folder, ChatJID: storetest.Chat, Place: "place", ThreadID: "thread",
		ReplyTo: "native-1", Surface: "telegram-group", Ceiling: 1500, CreatedAt: 100,
	}
	for _, f := range set {
		f(turn)
	}
	if turn.TriggerMessageID == 0 {
		turn.TriggerMessageID = storetest.Inbound(t, s, turn.ChatJID, "hello").ID
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		waits := turn.WaitsFor
		turn.WaitsFor = cmp.Or(waits, msg.WaitsFiles) // so that no live run takes it
		if _, err := rows.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		if waits == "" {
			turn.WaitsFor = ""
			if err := rows.EndWait(tx, turn.ID, msg.WaitsFiles); err != nil {
				return err
			}
		}
		return tx.Decide(turn.TriggerMessageID, store.Decision{
			Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID,
		}, turn.CreatedAt)
	})
	return turn
}

// Piped stores a turn for the address of a live run, which takes it, also while it works on another one.
func Piped(t testing.TB, s *store.Store, run *msg.Run) *msg.Turn {
	t.Helper()
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: run.Folder, Topic: run.Topic, ChatJID: run.ChatJID, ThreadID: run.ThreadID,
		TriggerMessageID: storetest.Inbound(t, s, run.ChatJID, "more").ID, CreatedAt: 110,
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, err := rows.PutTurn(tx, turn, 5); err != nil || turn.RunID != 0 {
			return err
		}
		err := rows.TakeTurn(tx, turn.ID, run.ID, turn.CreatedAt)
		if errors.Is(err, store.ErrStale) {
			return nil
		}
		taken, _ := tx.Turn(t.Context(), turn.ID)
		*turn = *taken
		return err
	})
	return turn
}

// Begun starts a run for a queued turn.
func Begun(t testing.TB, s *store.Store, turn *msg.Turn) *msg.Run {
	t.Helper()
	run := &msg.Run{
		Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, ThreadID: turn.ThreadID,
		Runtime: "process", StartedAt: 200,
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.StartRun(tx, run, turn.ID) })
	return run
}

// Answer is a final frame of a run for a turn.
func Answer(run *msg.Run, turn *msg.Turn, text string) rows.Reply {
	return rows.Reply{RunID: run.ID, TurnID: turn.ID, Text: text, Final: true, Sender: "agent:" + turn.Folder,
		SenderName: "Ada"}
}

// AnswerTurn is rows.AnswerTurn.
func AnswerTurn(tx *store.Tx, r rows.Reply, now int64) error {
	_, err := rows.AnswerTurn(tx, r, now)
	return err
}

// StoreReply stores a frame.
func StoreReply(t testing.TB, s *store.Store, r rows.Reply, now int64) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error { return AnswerTurn(tx, r, now) })
}

// Work makes an agent of the group main work on a message of a chat, in a thread or "" for none, until end is called.
// Each call needs a topic of its own.
func Work(t testing.TB, s *store.Store, chatJID, thread, topic, platformID string) (end func()) {
	t.Helper()
	write := func(fn func(tx *store.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: chatJID, ThreadID: thread, Topic: topic,
		CreatedAt: 1}
	run := &msg.Run{Folder: "main", Topic: topic, ChatJID: chatJID, ThreadID: thread, StartedAt: 1}
	trigger := &msg.Message{ChatJID: chatJID, PlatformID: platformID, Direction: msg.In, Content: "do something"}
	write(func(tx *store.Tx) (err error) {
		if turn.TriggerMessageID, _, err = tx.PutMessage(trigger); err == nil {
			_, err = rows.PutTurn(tx, turn, 0)
		}
		if err == nil {
			err = rows.StartRun(tx, run, turn.ID)
		}
		return err
	})
	return func() {
		t.Helper()
		write(func(tx *store.Tx) error {
			return AnswerTurn(tx, rows.Reply{RunID: run.ID, TurnID: turn.ID, Final: true}, 2)
		})
	}
}

// PutQuoted stores a post as one that came along, and reports whether it was new.
func PutQuoted(t *testing.T, s *store.Store, m *msg.Message) (fresh bool) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		fresh, err = adapterrows.PutQuoted(tx, m)
		return err
	})
	return fresh
}
