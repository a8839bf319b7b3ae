package storetest

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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
			_, err = tx.PutTurn(turn, 0)
		}
		if err == nil {
			err = tx.StartRun(run, turn.ID)
		}
		return err
	})
	return func() {
		t.Helper()
		write(func(tx *store.Tx) error {
			return tx.AnswerTurn(store.Reply{RunID: run.ID, TurnID: turn.ID, Final: true}, 2)
		})
	}
}
