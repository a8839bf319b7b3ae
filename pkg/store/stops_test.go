package store_test

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// What groups do for a conversation belongs to it: a turn in a chat between groups, on whatever level, and a row there that is
// not decided. What they do for another thread goes on.
func TestStopChat_WorkOfOtherGroups_EndsWithTheConversation(t *testing.T) {
	t.Parallel()
	thread, topic := "7", "#a"
	for name, stop := range map[string]store.Stop{
		"of a thread": {ChatJID: chat, Thread: &thread}, "of a topic": {ChatJID: chat, Topic: &topic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			// request is a row by which a group asks another one for a turn, and asked its turn in a chat between groups.
			request := func(by *msg.Turn) *msg.Message {
				return stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, ForwardedFrom: &msg.ReturnAddress{
					Kind: msg.Escalation, TurnID: by.ID, RootTurnID: by.Root(), Folder: by.Folder, ChatJID: by.ChatJID, Topic: by.Topic, ThreadID: by.ThreadID,
				}})
			}
			asked := func(by *msg.Turn) *msg.Turn {
				row := request(by)
				return queued(t, s, func(turn *msg.Turn) {
					turn.Kind, turn.Folder, turn.ChatJID, turn.Topic, turn.RootTurnID = msg.Delegated, "acme", "group:acme", msg.DelegatedTopic(row.ID), by.Root()
					turn.TriggerMessageID = row.ID
				})
			}
			var kept, ended []int64
			for _, in := range []struct {
				thread, topic string
				turns         *[]int64
			}{{"7", "#a", &ended}, {"8", "#b", &kept}} {
				root := queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Topic = in.thread, in.topic })
				reply(t, s, answer(begun(t, s, root), root, "I asked"), 300)
				parent := asked(root)
				above := asked(parent)
				begun(t, s, above)
				*in.turns = append(*in.turns, parent.ID, above.ID)
			}
			undecided := request(turn(t, s, ended[0]))
			write(t, s, func(tx *store.Tx) error {
				stop.BeforeMessage = undecided.ID + 1
				_, _, err := tx.StopChat(stop, 500)
				return err
			})
			for _, id := range ended {
				if got := turn(t, s, id); got.State != msg.TurnCancelled {
					t.Errorf("turn %d for the conversation is %s", id, got.State)
				}
			}
			for _, id := range kept {
				if got := turn(t, s, id); !got.State.IsOpen() {
					t.Errorf("turn %d for another one is %s", id, got.State)
				}
			}
			if m := must(s.Message(t.Context(), undecided.ID))(t); m.Reason != msg.ReasonStopped {
				t.Errorf("the undecided request is %q", m.Reason)
			}
		})
	}
}
