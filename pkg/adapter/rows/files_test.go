package rows_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestThreads(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := storetest.Must(rows.Thread(t.Context(), s.Reader, storetest.Chat, "7"))(t); got != nil {
		t.Errorf("unknown thread: %+v", got)
	}
	for _, step := range []struct {
		name      string
		put, want msg.Thread
	}{
		{"new", msg.Thread{Kind: "forum_topic", Title: "Plans"}, msg.Thread{Kind: "forum_topic", Title: "Plans"}},
		{"nothing more is known", msg.Thread{}, msg.Thread{Kind: "forum_topic", Title: "Plans"}},
		{"renamed", msg.Thread{Title: "Old plans"}, msg.Thread{Kind: "forum_topic", Title: "Old plans"}},
		{"its author", msg.Thread{Author: "telegram:7"}, msg.Thread{Kind: "forum_topic", Title: "Old plans", Author: "telegram:7"}},
		{"another kind", msg.Thread{Kind: "thread"}, msg.Thread{Kind: "thread", Title: "Old plans", Author: "telegram:7"}},
	} {
		step.put.ChatJID, step.put.ID = storetest.Chat, "7"
		step.want.ChatJID, step.want.ID = storetest.Chat, "7"
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutThread(step.put) })
		if diff := cmp.Diff(&step.want, storetest.Must(rows.Thread(t.Context(), s.Reader, storetest.Chat, "7"))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	for _, other := range [][2]string{{storetest.Chat, "8"}, {"telegram:-2", "7"}, {storetest.Chat, ""}} {
		if got := storetest.Must(rows.Thread(t.Context(), s.Reader, other[0], other[1]))(t); got != nil {
			t.Errorf("%q: %+v", other, got)
		}
	}
}

// TestActiveTriggers expects the user's message where the gateway derived a row from it.
func TestActiveTriggers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const chat = "slack:C1"
	post := func(id string, from int64) int64 {
		return storetest.Stored(t, s, &msg.Message{ChatJID: chat, PlatformID: id, DerivedFrom: from, Direction: msg.In, Content: "hello"}).ID
	}
	plain, split := post("1.1", 0), post("1.2", 0)
	derived, internal := post("", split), post("", 0)
	var runs []*msg.Run
	var turns []*msg.Turn
	for i, trigger := range []int64{plain, derived, internal} {
		turns = append(turns, gatedtest.Queued(t, s, func(turn *msg.Turn) {
			turn.ChatJID, turn.ThreadID, turn.TriggerMessageID, turn.Topic = chat, "1.0", trigger, fmt.Sprint("#", i)
		}))
		runs = append(runs, gatedtest.Begun(t, s, turns[i]))
	}
	gatedtest.Queued(t, s, func(turn *msg.Turn) { // not started yet
		turn.ChatJID, turn.ThreadID, turn.TriggerMessageID, turn.Topic = chat, "1.0", post("1.3", 0), "#later"
	})
	lane := store.Lane{ChatJID: chat, ThreadID: "1.0"}
	expect := func(in store.Lane, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, storetest.Must(rows.ActiveTriggers(t.Context(), s.Reader, in))(t)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", in, diff)
		}
	}
	expect(lane, "1.1", "1.2")
	expect(store.Lane{ChatJID: chat})
	expect(store.Lane{ChatJID: "slack:C2", ThreadID: "1.0"})
	gatedtest.StoreReply(t, s, gatedtest.Answer(runs[0], turns[0], "done"), 300)
	expect(lane, "1.2")
}
