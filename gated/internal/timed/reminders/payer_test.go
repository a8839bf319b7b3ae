package reminders

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const member = "telegram:5"

func (h *harness) configure(config string) {
	h.t.Helper()
	h.write(func(tx *store.Tx) error { return storetest.SetConfig(tx, "main", []byte(config)) })
}

// notices are the texts of notices that the chat got.
func (h *harness) notices() (texts []string) {
	for _, m := range h.sent() {
		if m.Source == msg.SourceNotice {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

func TestScheduler_Prompt_TurnHasPayerRootAndDepth(t *testing.T) {
	h := parallel(t)
	root := h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(time.Minute).UnixMilli(), CreatedBy: member})
	h.at("2026-11-23T08:01:00Z")
	first := h.turns()[0]
	h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(time.Minute).UnixMilli(), CreatedBy: member, RootTurnID: first.ID, Depth: 3})
	h.put(msg.Reminder{Kind: msg.ReminderPrompt, Cron: "30 9 * * *", CreatedBy: member, RootTurnID: first.ID, Depth: 1})
	h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(time.Hour).UnixMilli(), CreatedBy: member, RootTurnID: 4711, Depth: 1}) // deleted since
	h.at("2026-11-23T09:30:00Z")
	var got []string
	for _, turn := range h.turns() {
		row, err := h.st.Message(t.Context(), turn.TriggerMessageID)
		if err != nil || row.OnBehalfOf != member || row.Sender == member {
			t.Errorf("row %+v, %v", row, err)
		}
		stored := storetest.Must(h.st.Turn(t.Context(), turn.ID))(t)
		got = append(got, fmt.Sprint(stored.RootTurnID, stored.Depth))
	}
	// One that repeats begins a chain at each slot.
	if want := []string{"0 1", fmt.Sprint(first.ID, 4), "0 2", "0 2"}; !slices.Equal(got, want) {
		t.Errorf("roots and depths are %q, want %q; the first reminder is %d", got, want, root.ID)
	}
}

// TestScheduler_Storm_EndsAtTheRateWithOneNotice has more prompts at once than a sender may cause.
func TestScheduler_Storm_EndsAtTheRateWithOneNotice(t *testing.T) {
	h := parallel(t)
	h.configure(`{"rate":3}`)
	charged := 0
	h.s.cfg.Charged = func(string) { charged++ }
	for i := range 30 {
		h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(time.Duration(i) * time.Second).UnixMilli(), CreatedBy: member})
	}
	last := h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(31 * time.Second).UnixMilli(), CreatedBy: member})
	hourly := h.put(msg.Reminder{Kind: msg.ReminderPrompt, Cron: "0 * * * *", CreatedBy: member})
	other := h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(32 * time.Second).UnixMilli(), CreatedBy: "telegram:6"})
	h.at("2026-11-23T08:00:40Z")
	if notices := h.notices(); len(h.turns()) != 4 || len(notices) != 1 || !strings.Contains(notices[0], "telegram:5, who asked for it, has had the 3 answers an hour") || charged != 4 {
		t.Errorf("%d turns, %d charged, notices %q", len(h.turns()), charged, notices)
	}
	for r, want := range map[*msg.Reminder]msg.ReminderState{last: msg.ReminderCancelled, other: msg.ReminderDone} {
		if stored, _ := factrows.Reminder(t.Context(), h.st.Reader, r.ID); stored.State != want || (want == msg.ReminderCancelled) != strings.Contains(stored.Error, "no turn left") {
			t.Errorf("the reminder of %s is %s (%s)", r.CreatedBy, stored.State, stored.Error)
		}
	}
	h.at("2026-11-23T09:00:00Z") // within the hour: the slot is left out, and nothing said
	if len(h.turns()) != 4 || len(h.notices()) != 1 {
		t.Errorf("%d turns, %d notices", len(h.turns()), len(h.notices()))
	}
	h.at("2026-11-23T10:00:00Z")
	h.expect(1, msg.ReminderActive, hourly) // the notice
	if len(h.turns()) != 5 {
		t.Errorf("%d turns", len(h.turns()))
	}
}

func TestScheduler_Operator_HasNoRate(t *testing.T) {
	h := parallel(t)
	h.configure(`{"rate":1,"access":[]}`)
	h.s.cfg.Operators = map[string]bool{member: true}
	for range 3 {
		h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.UnixMilli(), CreatedBy: member})
	}
	h.at("2026-11-23T08:00:01Z")
	if len(h.turns()) != 3 || len(h.notices()) != 0 {
		t.Errorf("%d turns, notices %q", len(h.turns()), h.notices())
	}
}

func TestScheduler_SenderExcludedSince_ReminderEnds(t *testing.T) {
	h := parallel(t)
	theirs, old := h.put(msg.Reminder{Cron: "30 9 * * *", CreatedBy: member}), h.put(msg.Reminder{Cron: "30 9 * * *", CreatedBy: "agent:main"})
	h.configure(`{"access":["telegram:1"]}`)
	h.at("2026-11-23T08:30:00Z")
	h.expect(1, msg.ReminderCancelled, theirs)
	h.expect(1, msg.ReminderActive, old) // from before senders were kept
	if stored, _ := factrows.Reminder(t.Context(), h.st.Reader, theirs.ID); !strings.Contains(stored.Error, "may not use group main any more") {
		t.Errorf("it ended for %q", stored.Error)
	}
}

func TestFreeSlot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		at, earliest int64
		planned      []int64
		want         int64
	}{
		{5_000, 0, nil, 5_000},
		{5_000, 0, []int64{65_000}, 5_000},
		{5_000, 0, []int64{64_999}, 125_000},
		{5_000, 0, []int64{1_000, 61_000, 300_000}, 121_000},
		{5_500, 0, []int64{5_500}, 66_000},
		{5_000, 60_001, []int64{1_000}, 61_000},
		{500_000, 0, []int64{1_000, 300_000}, 500_000},
	} {
		if got := FreeSlot(tc.at, tc.earliest, tc.planned); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

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
			facts, err := rows.ReadPromptFacts(t.Context(), h.st.Reader, &msg.Turn{Folder: "main", ChatJID: chatJID}, 0, 0, 0)
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
