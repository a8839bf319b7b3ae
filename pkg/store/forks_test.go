package store_test

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// inFork stores an answer in a chat's place whose turn runs in a topic, and returns its platform id.
func inFork(t *testing.T, s *store.Store, chat, thread, turnTopic, rowTopic, id string) string {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		in := &msg.Message{ChatJID: chat, Direction: msg.In, ThreadID: thread, Topic: thread, ReceivedAt: 1}
		if _, _, err := tx.PutMessage(in); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "f", ChatJID: chat, Topic: turnTopic, ThreadID: thread, Place: thread, TriggerMessageID: in.ID}
		if _, err := tx.PutTurn(turn, 0); err != nil {
			return err
		}
		out := &msg.Message{ChatJID: chat, Direction: msg.Out, ThreadID: thread, Topic: rowTopic, TurnID: turn.ID, PlatformID: id, OutState: msg.OutSent, ReceivedAt: 1}
		_, _, err := tx.PutMessage(out)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestForkOfRow_RepliesToItsMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	chat, slack := "telegram:-1", "slack:C1"
	parent := inFork(t, s, chat, "", "", "", "1")
	answer := inFork(t, s, chat, "", "#fix", "", "2")
	question := inFork(t, s, chat, "", "", "#fix", "3")
	elsewhere := inFork(t, s, chat, "9", "9#fix", "9", "4")
	off := inFork(t, s, slack, "1.2", "1.2", "1.2", "1.3")
	fork := func(chat, topic, thread string, own bool, at int64) {
		t.Helper()
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			return tx.PutFork(&msg.Fork{ChatJID: chat, Topic: topic, Folder: "f", ThreadID: thread, OwnThread: own, MessageID: 1, CreatedAt: at})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fork(chat, "#fix", "", false, 1)
	fork(slack, "1.2#fix", "1.2", false, 1)
	fork(slack, "1.2#fix2", "1.2", false, 2)
	fork(slack, "#fix", "2.2", true, 1)
	check := func(chat, thread, replyTo, want string) {
		t.Helper()
		got, err := s.ForkOfRow(t.Context(), &msg.Message{ChatJID: chat, ThreadID: thread, ReplyToID: replyTo})
		if err != nil || got != want {
			t.Errorf("%s %q, reply to %q: %q %v, want %q", chat, thread, replyTo, got, err, want)
		}
	}
	check(chat, "", "", "")
	check(chat, "", "unknown", "")
	check(chat, "", parent, "")
	check(chat, "", answer, "#fix")
	check(chat, "", question, "#fix")
	check(chat, "9", elsewhere, "") // not a fork any more
	check(slack, "1.2", "1.2", "1.2#fix2")
	check(slack, "", off, "")
	check(slack, "2.2", "2.2", "") // by its binding
	if topic, err := s.TopicOfThread(t.Context(), slack, "2.2"); topic != "#fix" || err != nil {
		t.Errorf("its own thread is bound to %q %v", topic, err)
	}
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.EndFork(chat, "#fix") }); err != nil {
		t.Fatal(err)
	}
	check(chat, "", answer, "")
	if taken, err := s.ForkTaken(t.Context(), "f", slack, "#fix"); !taken || err != nil {
		t.Errorf("a bound topic is free: %v", err)
	}
	if taken, err := s.ForkTaken(t.Context(), "f", chat, "#fix2"); taken || err != nil {
		t.Errorf("an unused topic is taken: %v", err)
	}
}

func TestMoveChat_ForksMove(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutFork(&msg.Fork{ChatJID: "telegram:-1", Topic: "#fix", Folder: "f", MessageID: 1, CreatedAt: 1}); err != nil {
			return err
		}
		return tx.MoveChat("telegram:-1", "telegram:-100", 5)
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.Fork(t.Context(), "telegram:-100", "#fix"); f == nil || err != nil {
		t.Errorf("the fork has not moved: %v", err)
	}
}
