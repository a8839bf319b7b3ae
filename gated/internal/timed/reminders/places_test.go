package reminders

import (
	"fmt"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// A reminder fires where it was made.
func TestFiringMessages_Places(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chat, thread, topic, place, surface string
		kind                                msg.ChatKind
	}{
		"slack channel": {chat: "slack:C1", topic: "1700000000.000100", kind: msg.ChatChannel, surface: "slack-channel"},
		"forum topic":   {chat: chatJID, thread: "33", topic: "33", kind: msg.ChatGroup, place: "33", surface: "telegram-topic"},
		"pinned topic":  {chat: chatJID, thread: "33", topic: "#deploy", kind: msg.ChatGroup, place: "33", surface: "telegram-topic"},
		"forum post":    {chat: "discord:1", thread: "2", topic: "2", kind: msg.ChatGroup, place: "2", surface: "discord-thread"},
		"named topic":   {chat: chatJID, topic: "#standup", kind: msg.ChatGroup, place: "#standup", surface: "telegram-group"},
	} {
		r := &msg.Reminder{ID: 1, Folder: "main", ChatJID: tt.chat, ThreadID: tt.thread, Topic: tt.topic, Kind: msg.ReminderText, Body: "x"}
		if m, _ := firingMessages(r, tt.kind, 1); m.ThreadID != tt.thread || m.Topic != tt.place {
			t.Errorf("%s: the text is %+v", name, m)
		}
		r.Kind = msg.ReminderPrompt
		if _, turn := firingMessages(r, tt.kind, 1); turn.ThreadID != tt.thread || turn.Place != tt.place || turn.Surface != tt.surface || turn.Topic != tt.topic {
			t.Errorf("%s: the turn is %+v", name, turn)
		}
	}
}

// Three refusals, one after another, end a reminder that repeats, and its agent reads why.
func TestScheduler_MessagesRefused_ReminderEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  msg.ReminderKind
		class [3]msg.ErrorClass // of each day's message, "" for one that was sent
		sent  int
		state msg.ReminderState
	}{
		"text refused":       {msg.ReminderText, [3]msg.ErrorClass{msg.Permanent, msg.Permanent, msg.Permanent}, 3, msg.ReminderCancelled},
		"prompt refused":     {msg.ReminderPrompt, [3]msg.ErrorClass{msg.Permanent, msg.Permanent, msg.Permanent}, 3, msg.ReminderCancelled},
		"one sent":           {msg.ReminderText, [3]msg.ErrorClass{msg.Permanent, "", msg.Permanent}, 4, msg.ReminderActive},
		"platform was away":  {msg.ReminderText, [3]msg.ErrorClass{msg.Permanent, msg.Expired, msg.Permanent}, 4, msg.ReminderActive},
		"prompt: other fate": {msg.ReminderPrompt, [3]msg.ErrorClass{msg.Permanent, msg.Permanent, ""}, 4, msg.ReminderActive},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			r := h.put(msg.Reminder{Kind: tt.kind, Cron: "30 9 * * *"})
			for day, class := range tt.class {
				h.at(fmt.Sprintf("2026-11-%dT08:30:00Z", 23+day))
				h.settle(h.answer(tt.kind), class)
			}
			h.at("2026-11-26T08:30:00Z")
			if tt.kind == msg.ReminderPrompt && tt.state == msg.ReminderActive {
				h.answer(tt.kind)
			}
			h.expect(tt.sent, tt.state, r)
			facts, err := rows.ReadPromptFacts(t.Context(), h.st.Reader, &msg.Turn{Folder: "main", ChatJID: chatJID}, 0, 0)
			if err != nil || facts.SystemWaits != (tt.state == msg.ReminderCancelled) {
				t.Errorf("the group's next prompt: %+v, %v", facts, err)
			}
		})
	}
}

// answer is the message of the slot that has just fired: that of a prompt answers it.
func (h *harness) answer(kind msg.ReminderKind) *msg.Message {
	h.t.Helper()
	if kind == msg.ReminderText {
		rows := h.sent()
		return rows[len(rows)-1]
	}
	turns := h.turns()
	m := &msg.Message{ChatJID: chatJID, Direction: msg.Out, Content: "done", TurnID: turns[len(turns)-1].ID, OutState: msg.OutQueued}
	h.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m
}

// settle ends the delivery of a row, as failed if class is not "".
func (h *harness) settle(m *msg.Message, class msg.ErrorClass) {
	h.t.Helper()
	d := store.Delivery{MessageID: m.ID, State: msg.OutSent}
	if class != "" {
		d.State, d.ErrorClass, d.Error = msg.OutFailed, class, "Cannot send messages in a voice channel"
	}
	h.write(func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(m.ID, 1, 1); err != nil {
			return err
		}
		if err := tx.PutDelivery(d, 1); err != nil {
			return err
		}
		return tx.SettleOutbound(m.ID, d.State, "")
	})
}

// One made before reminders had threads.
func TestScheduler_Forum_ReminderWithoutPostEnds(t *testing.T) {
	h := parallel(t)
	r := h.put(msg.Reminder{ChatJID: "discord:1", DueAt: h.now.Add(time.Hour).UnixMilli()})
	h.write(func(tx *store.Tx) error {
		if err := tx.PutThread(msg.Thread{ChatJID: r.ChatJID, ID: "2", Kind: "forum_post"}); err != nil {
			return err
		}
		return tx.PutRoute(&msg.Route{Match: "chat_jid=" + r.ChatJID, Target: "main"})
	})
	h.at("2026-11-23T09:00:01Z")
	h.expect(0, msg.ReminderCancelled, r)
}
