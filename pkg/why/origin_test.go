package why

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// printed is the text about a row.
func printed(t *testing.T, st *store.Store, id int64) string {
	t.Helper()
	p, err := Read(t.Context(), st.Reader, id)
	if err != nil {
		t.Fatal(err)
	}
	return Text(p, time.UnixMilli(at(10_000)), time.UTC)
}

func contains(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is missing in:\n%s", line, text)
		}
	}
}

func TestOrigin_Reminder(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	once := &msg.Reminder{Folder: "acme", ChatJID: "telegram:1", Kind: msg.ReminderText, Body: "x", TimeZone: "Europe/Berlin", Missed: msg.MissedOne, DueAt: at(0), NextSlot: at(0)}
	prompt := &msg.Reminder{Folder: "acme", ChatJID: "telegram:1", Kind: msg.ReminderPrompt, Body: "x", TimeZone: "Mars", Missed: msg.MissedOne, Cron: "13 16 * * *", NextSlot: at(0)}
	text := &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, Source: msg.SourceReminder, Timestamp: at(9), ReceivedAt: at(9), OutState: msg.OutQueued}
	asked := &msg.Message{ChatJID: "group:acme", Direction: msg.In, Source: msg.SourceReminder, Timestamp: at(9), ReceivedAt: at(9)}
	turn := &msg.Turn{Kind: msg.Broadcast, Folder: "acme", ChatJID: "telegram:1", Surface: "telegram-dm", CreatedAt: at(9)}
	answer := &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, Source: msg.SourceAgent, Timestamp: at(20), ReceivedAt: at(20), OutState: msg.OutQueued}
	storetest.Write(t, st, func(tx *store.Tx) error {
		for r, f := range map[*msg.Reminder]gatedtest.Firing{once: {Slot: at(0), Message: text}, prompt: {Slot: at(0), Next: at(99), Message: asked, Turn: turn}} {
			if err := gatedtest.PutReminder(tx, r); err != nil {
				return err
			}
			if fired, err := gatedtest.FireReminder(tx, r, f, at(9)); err != nil || !fired {
				return fmt.Errorf("fired %t: %w", fired, err)
			}
		}
		answer.TurnID = turn.ID
		_, _, err := tx.PutMessage(answer)
		return err
	})
	contains(t, printed(t, st, text.ID), fmt.Sprintf("  comes from   reminder %d of acme, due 2026-09-21T16:13:20+02:00, slot 2026-09-21T16:13:20+02:00", once.ID))
	origin := fmt.Sprintf("reminder %d of acme, due 13 16 * * * in Mars, slot 2026-09-21T14:13:20Z", prompt.ID)
	contains(t, printed(t, st, asked.ID), "  comes from   "+origin)
	contains(t, printed(t, st, answer.ID), fmt.Sprintf("message %d stored by reminder, from %s", asked.ID, origin))
}

func TestOrigin_Broadcast(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	var byTool int64
	storetest.Write(t, st, func(tx *store.Tx) error {
		for i, key := range []string{"a", "b"} {
			b := &gatedtest.Broadcast{Key: key, Text: "x", CreatedBy: "web:op\x1b[2J\n" + key, Chats: []string{"telegram:1", "telegram:2"}, CreatedAt: at(int64(i))}
			if _, err := gatedtest.PutBroadcast(tx, b); err != nil {
				return err
			}
			if _, err := gatedtest.PutBroadcastPage(tx, key, 9, at(1)); err != nil {
				return err
			}
		}
		var err error
		byTool, err = gatedtest.PutBroadcastMessage(tx, &msg.Message{ChatJID: "telegram:1", Content: "x"}, at(2))
		return err
	})
	contains(t, printed(t, st, 4), "  comes from   broadcast 2 by web:op?[2J b, to 2 chats")
	contains(t, printed(t, st, byTool), "  comes from   the tool broadcast of an agent, or a broadcast that was deleted since")
}

func TestOrigin_ToolAndPollEnd(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	ask := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Content: "hi", Timestamp: at(0), ReceivedAt: at(0)}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", Surface: "telegram-dm", CreatedAt: at(1)}
	out := func(source string, n int64) *msg.Message {
		return &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, Source: source, Timestamp: at(n), ReceivedAt: at(n), OutState: msg.OutQueued}
	}
	poll, edit, end := out(msg.SourceTool, 2), out(msg.SourceTool, 3), out(msg.SourceNotice, 4)
	poll.Kind, poll.PlatformID, edit.Kind, edit.TargetID, end.Kind, end.TargetID = msg.KindPoll, "p7", msg.KindEdit, "p7", msg.KindPoll, "p7"
	injected := &msg.Message{ChatJID: "telegram:2", Direction: msg.In, Source: msg.SourceTool, Timestamp: at(5), ReceivedAt: at(5)}
	stored := &msg.StoredPoll{Folder: "main", ChatJID: "telegram:1", Poll: msg.Poll{Question: "?", Options: []string{"a", "b"}}, CreatedAt: at(2)}
	storetest.Write(t, st, func(tx *store.Tx) error {
		put := func(m *msg.Message) error { _, _, err := tx.PutMessage(m); return err }
		if err := put(ask); err != nil {
			return err
		}
		turn.TriggerMessageID = ask.ID
		if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		poll.TurnID, edit.TurnID = turn.ID, turn.ID
		injected.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Injection, TurnID: turn.ID}
		for _, m := range []*msg.Message{poll, edit, end, injected} {
			if err := put(m); err != nil {
				return err
			}
		}
		if stored.MessageID = poll.ID; gatedtest.PutPoll(tx, stored) != nil {
			return fmt.Errorf("poll %+v", stored)
		}
		for i, call := range []struct{ tool, result string }{
			{"poll_create", fmt.Sprintf(`{"poll_id":1,"message_id":%d}`, poll.ID)}, {"edit_message", `{"ok":true}`},
			{"inject_message", fmt.Sprintf(`{"message_id":%d}`, injected.ID)}, {"broadcast", `{"message_ids":[71,72]}`}, {"odd", `[1]`},
		} {
			if err := gatedtest.PutToolCall(tx, turn.ID, fmt.Sprint(i), call.tool, json.RawMessage(call.result), at(2+int64(i))); err != nil {
				return err
			}
		}
		return tx.Decide(ask.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", TurnID: turn.ID}, at(1))
	})
	contains(t, printed(t, st, poll.ID), "  comes from   tool poll_create of turn 1")
	contains(t, printed(t, st, edit.ID), "  comes from   a tool of turn 1")
	contains(t, printed(t, st, injected.ID), "  comes from   tool inject_message of turn 1", fmt.Sprintf("message %d stored by tool, from tool inject_message of turn 1", injected.ID))
	contains(t, printed(t, st, end.ID), fmt.Sprintf("  comes from   the end of poll %d of main, which is message %d", stored.ID, poll.ID))
	whole := printed(t, st, ask.ID)
	contains(t, whole, fmt.Sprintf("turn 1 called tool poll_create: message %d", poll.ID), "turn 1 called tool edit_message", "turn 1 called tool broadcast: messages 71 72", "turn 1 called tool odd")
	if strings.Contains(whole, "comes from") {
		t.Errorf("a user's message comes from:\n%s", whole)
	}
}
