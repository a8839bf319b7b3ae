package reminders

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
