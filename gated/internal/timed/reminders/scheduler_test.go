package reminders

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const chatJID = "telegram:-1"

// harness is a scheduler whose clock the test sets. The group main has one chat.
type harness struct {
	t          *testing.T
	st         *store.Store
	s          *Scheduler
	now        time.Time
	mu         sync.Mutex
	dispatched []*msg.Turn // guarded by mu: read by turns
}

// parallel is newHarness for a test that runs beside others.
func parallel(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return newHarness(t)
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := harnessOn(t, storetest.Open(t))
	h.restart()
	return h
}

// harnessOn is a harness whose scheduler has not begun.
func harnessOn(t *testing.T, st *store.Store) *harness {
	t.Helper()
	h := &harness{t: t, st: st, now: instant(t, "2026-11-23T08:00:00Z")}
	h.write(func(tx *store.Tx) error {
		if _, err := tx.PutGroup(&msg.Group{Folder: "main", Config: []byte("{}")}); err != nil {
			return err
		}
		return tx.PutRoute(&msg.Route{Match: "chat_jid=" + chatJID, Target: "main"})
	})
	h.begin()
	return h
}

// begin makes a new scheduler, as after a crash.
func (h *harness) begin() {
	h.s = New(Config{MaxAgents: 1, Now: func() time.Time { return h.now }, Chats: &chats.Chats{}}, h.st, h,
		slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

// restart does so, and lets it align the reminders.
func (h *harness) restart() {
	h.t.Helper()
	h.begin()
	if err := h.s.realign(h.t.Context(), h.now.UnixMilli()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) Dispatch(turns ...*msg.Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dispatched = append(h.dispatched, turns...)
}

// turns are those that were dispatched.
func (h *harness) turns() []*msg.Turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.dispatched)
}

func (h *harness) write(fn func(*store.Tx) error) {
	h.t.Helper()
	if err := h.st.Write(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

// put stores a reminder; an empty field has its usual value.
func (h *harness) put(r msg.Reminder) *msg.Reminder {
	h.t.Helper()
	r.Folder, r.ChatJID, r.TimeZone = "main", cmp.Or(r.ChatJID, chatJID), cmp.Or(r.TimeZone, "Europe/Berlin")
	if r.Kind == "" {
		r.Kind = msg.ReminderText
	}
	if r.Missed == "" {
		r.Missed = msg.MissedOne
	}
	r.Body = "stand up"
	var err error
	if r.NextSlot, err = Next(&r, h.now.UnixMilli()); err != nil {
		h.t.Fatal(err)
	}
	h.write(func(tx *store.Tx) error { return rows.PutReminder(tx, &r) })
	return &r
}

func (h *harness) daily() *msg.Reminder { return h.put(msg.Reminder{Cron: "30 9 * * *"}) } // 08:30 UTC

// at sets the clock and fires the reminders that are due then.
func (h *harness) at(clock string) {
	h.t.Helper()
	h.now = instant(h.t, clock)
	for range 1000 {
		wait := storetest.Must(h.s.fireDue(h.t.Context()))(h.t)
		if wait > 0 {
			return
		}
	}
	h.t.Fatal("reminders are due for ever")
}

// sent are the outbound rows of reminders.
func (h *harness) sent() (rows []*msg.Message) {
	h.t.Helper()
	last := storetest.Must(h.st.LastMessageID(h.t.Context()))(h.t)
	for id := range last {
		m := storetest.Must(h.st.Message(h.t.Context(), id+1))(h.t)
		if m != nil && m.Direction == msg.Out {
			rows = append(rows, m)
		}
	}
	return rows
}

func (h *harness) expect(sent int, state msg.ReminderState, r *msg.Reminder) {
	h.t.Helper()
	stored := storetest.Must(factrows.Reminder(h.t.Context(), h.st.Reader, r.ID))(h.t)
	if got := len(h.sent()); got != sent || stored.State != state {
		h.t.Errorf("%d messages, the reminder is %s (%s), want %d and %s", got, stored.State, stored.Error, sent, state)
	}
}

func TestScheduler_OneShot_FiresAtTopLevel(t *testing.T) {
	h := parallel(t)
	r := h.put(msg.Reminder{DueAt: h.now.Add(time.Hour).UnixMilli(), Topic: "77"})
	h.at("2026-11-23T09:00:00Z")
	m := h.sent()[0]
	if m.Source != msg.SourceReminder || m.ThreadID != "" || m.Topic != "" || m.ReplyToID != "" || m.TurnID != 0 || m.OutState != msg.OutQueued ||
		m.Content != "stand up" || m.ChatJID != chatJID {
		t.Errorf("row is %+v", m)
	}
	made, slot, err := factrows.ReminderOf(t.Context(), h.st.Reader, m.ID)
	if err != nil || made == nil || made.ID != r.ID || slot != r.DueAt {
		t.Errorf("the row is of %+v, slot %d, %v", made, slot, err)
	}
}

func TestScheduler_Prompt_StoresBroadcastTurn(t *testing.T) {
	h := parallel(t)
	h.put(msg.Reminder{Kind: msg.ReminderPrompt, DueAt: h.now.Add(time.Hour).UnixMilli(), Topic: "#standup"})
	h.at("2026-11-23T09:00:01Z")
	if n := len(h.turns()); n != 1 {
		t.Fatalf("%d turns dispatched", n)
	}
	turn, err := h.st.Turn(t.Context(), h.turns()[0].ID)
	if err != nil || turn == nil {
		t.Fatal(turn, err)
	}
	if turn.Kind != msg.Broadcast || turn.ChatJID != chatJID || turn.ThreadID != "" || turn.ReplyTo != "" || turn.ClaimsEngagement ||
		turn.Topic != "#standup" || turn.Place != "#standup" || turn.Surface != "telegram-group" || turn.State != msg.TurnQueued {
		t.Errorf("turn is %+v", turn)
	}
	rows, err := factrows.TurnMessages(t.Context(), h.st.Reader, turn.ID)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	if m := rows[0]; m.Reason != msg.ReasonReminder || m.Disposition != msg.Routed || m.ChatJID != "group:main" || m.Content != "stand up" {
		t.Errorf("row is %+v", m)
	}
	if n := len(h.sent()); n != 0 {
		t.Errorf("%d messages beside the turn", n)
	}
}

// TestScheduler_Clock has the number of messages of a reminder by each time that the clock shows, and whether it goes on.
// Where gated was down, it starts at each of them.
func TestScheduler_Clock(t *testing.T) {
	t.Parallel()
	const active, done = msg.ReminderActive, msg.ReminderDone
	type step struct {
		clock string
		sent  int
		state msg.ReminderState
	}
	nine := instant(t, "2026-11-23T09:00:00Z").UnixMilli()
	daily, skips := msg.Reminder{Cron: "30 9 * * *"}, msg.Reminder{Cron: "30 9 * * *", Missed: msg.MissedSkip} // at 08:30 UTC
	for name, tc := range map[string]struct {
		reminder msg.Reminder
		down     bool
		steps    []step
	}{
		"once": {msg.Reminder{DueAt: nine}, false, []step{
			{"2026-11-23T08:59:59Z", 0, active}, {"2026-11-23T09:00:00Z", 1, done}, {"2026-11-23T09:01:00Z", 1, done}}},
		"once, missed, skip":                  {msg.Reminder{DueAt: nine, Missed: msg.MissedSkip}, false, []step{{"2026-11-23T10:00:00Z", 0, done}}},
		"down, one fires late":                {daily, true, []step{{"2026-11-26T07:00:00Z", 1, active}, {"2026-11-26T07:00:00Z", 1, active}}},
		"down, one, years later":              {daily, true, []step{{"2031-11-26T08:31:00Z", 1, active}, {"2031-11-26T08:31:00Z", 1, active}}},
		"down, skip":                          {skips, true, []step{{"2026-11-26T07:00:00Z", 0, active}, {"2026-11-26T07:00:00Z", 0, active}}},
		"down, skip, up again in time":        {skips, true, []step{{"2026-11-23T08:34:00Z", 1, active}, {"2026-11-23T08:34:00Z", 1, active}}},
		"down, skip, five minutes late":       {skips, true, []step{{"2026-11-23T08:35:01Z", 0, active}}},
		"down, skip, back at the newest slot": {skips, true, []step{{"2026-11-26T08:31:00Z", 1, active}, {"2026-11-26T08:31:00Z", 1, active}}},
		// It does not stay silent for a year.
		"the clock was a year ahead": {daily, true, []step{
			{"2027-11-23T08:30:00Z", 1, active}, {"2026-11-23T08:10:00Z", 1, active}, {"2026-11-23T08:30:00Z", 2, active}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			r := h.put(tc.reminder)
			for _, step := range tc.steps {
				if h.now = instant(t, step.clock); tc.down {
					h.restart()
				}
				h.at(step.clock)
				h.expect(step.sent, step.state, r)
			}
		})
	}
}

func TestScheduler_ClockSetBack_NoSlotFiresTwice(t *testing.T) {
	h := parallel(t)
	r := h.daily()
	h.at("2026-11-23T08:30:00Z")
	h.expect(1, msg.ReminderActive, r)
	for _, clock := range []string{"2026-11-23T08:29:58Z", "2026-11-23T08:30:00Z", "2026-11-20T07:00:00Z", "2026-11-23T08:30:01Z"} {
		h.now = instant(t, clock)
		h.restart()
		h.at(clock)
	}
	slots := map[int64]int{}
	for _, m := range h.sent() {
		_, slot, err := factrows.ReminderOf(t.Context(), h.st.Reader, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if slots[slot]++; slots[slot] > 1 {
			t.Errorf("slot %s fired twice", time.UnixMilli(slot).UTC())
		}
	}
	h.at("2026-11-24T08:30:00Z")
	if stored, _ := factrows.Reminder(t.Context(), h.st.Reader, r.ID); stored.NextSlot != instant(t, "2026-11-25T08:30:00Z").UnixMilli() {
		t.Errorf("next slot is %s", time.UnixMilli(stored.NextSlot).UTC())
	}
}

func TestScheduler_CrashAtAnyStep_FiresOnce(t *testing.T) {
	h := parallel(t)
	r := h.daily()
	h.now = instant(t, "2026-11-23T08:30:00Z")
	stale, err := factrows.Reminders(t.Context(), h.st.Reader, factrows.ReminderList{DueBy: h.now.UnixMilli(), Limit: 1})
	if err != nil || len(stale) != 1 {
		t.Fatal(stale, err)
	}
	h.at("2026-11-23T08:30:00Z")
	// A scheduler that has read the reminder before the commit fires nothing.
	if err := h.s.fire(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	// Nor does one whose slot was set back by hand.
	h.write(func(tx *store.Tx) error {
		now, err := factrows.Reminder(t.Context(), tx.Reader, r.ID)
		if err != nil {
			return err
		}
		return rows.ScheduleReminder(tx, now, stale[0].NextSlot)
	})
	h.at("2026-11-23T08:31:00Z")
	h.expect(1, msg.ReminderActive, r)
}

func TestScheduler_ChatOfAnotherGroup_ReminderEndsByRoutesAlone(t *testing.T) {
	t.Parallel()
	pin := func(tx *store.Tx) error { return rows.PinGroup(tx, chatJID, "ops", 2) }
	route := func(match, target string) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.PutRoute(&msg.Route{Match: match, Target: target}) }
	}
	drop := func(tx *store.Tx) error { return tx.Exec(`DELETE FROM routes WHERE id = 1`) }
	bySender := route("sender=telegram:42", "main")
	for name, tt := range map[string]struct {
		changes []func(*store.Tx) error
		sent    int
		state   msg.ReminderState
	}{
		"no group's":                           {[]func(*store.Tx) error{drop}, 0, msg.ReminderCancelled},
		"pinned":                               {[]func(*store.Tx) error{pin}, 1, msg.ReminderActive},
		"routed":                               {[]func(*store.Tx) error{drop, bySender, route("chat_jid="+chatJID, "ops")}, 0, msg.ReminderCancelled},
		"no group's, but for a sender":         {[]func(*store.Tx) error{drop, bySender}, 1, msg.ReminderActive},
		"no group's, but for mentions":         {[]func(*store.Tx) error{drop, route("verb=mention", "main")}, 1, msg.ReminderActive},
		"no group's, mentions are for another": {[]func(*store.Tx) error{drop, route("verb=mention", "ops")}, 0, msg.ReminderCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			r := h.daily()
			h.write(func(tx *store.Tx) error {
				if _, err := tx.PutGroup(&msg.Group{Folder: "ops", Config: []byte("{}")}); err != nil {
					return err
				}
				return tx.PutChat(chatJID, msg.ChatGroup, "", 1)
			})
			for _, change := range tt.changes {
				h.write(change)
			}
			h.at("2026-11-23T09:00:00Z")
			h.expect(tt.sent, tt.state, r)
		})
	}
}

func TestScheduler_BadRow_EndsAloneAndIsExplained(t *testing.T) {
	h := parallel(t)
	bad, good := h.daily(), h.daily()
	bad.Cron, bad.UpdatedAt = "not a cron", 1
	h.write(func(tx *store.Tx) error { return rows.UpdateReminder(tx, bad) })
	h.at("2026-11-23T08:30:00Z")
	h.expect(1, msg.ReminderCancelled, bad)
	h.expect(1, msg.ReminderActive, good)
	if stored, _ := factrows.Reminder(t.Context(), h.st.Reader, bad.ID); stored.Error == "" {
		t.Error("the reminder does not say why it ended")
	}
}

// TestScheduler_CronThatStoodStill_FiresAndOthersToo has a change of the clocks at midnight, which a library answers with
// the time that it was asked about.
func TestScheduler_CronThatStoodStill_FiresAndOthersToo(t *testing.T) {
	h := parallel(t)
	h.now = instant(t, "2027-04-29T20:00:00Z")
	fridays, good := h.put(msg.Reminder{Cron: "0 * * * fri", TimeZone: "Africa/Cairo"}), h.put(msg.Reminder{Cron: "0 * * * *"})
	h.at("2027-05-06T21:30:00Z")
	h.expect(2, msg.ReminderActive, fridays) // the last slot of each
	h.expect(2, msg.ReminderActive, good)
}

func TestScheduler_PanicOverOne_EndsItAndSaysWhy(t *testing.T) {
	h := parallel(t)
	r := h.daily()
	h.s.cfg.Chats = nil
	h.at("2026-11-23T08:30:00Z")
	h.expect(0, msg.ReminderCancelled, r)
	if stored, _ := factrows.Reminder(t.Context(), h.st.Reader, r.ID); !strings.Contains(stored.Error, "panic") {
		t.Errorf("the reminder ended for %q", stored.Error)
	}
}

func TestScheduler_Overdue_Named(t *testing.T) {
	h := parallel(t)
	h.daily()
	for _, tc := range []struct{ clock, want string }{
		{"2026-11-23T08:31:59Z", ""},
		{"2026-11-23T08:40:00Z", "reminder 1 of main in telegram:-1 is overdue for 10 min: look at gated's log and restart gated; `gated reminders cancel 1` ends the first"},
	} {
		h.now = instant(t, tc.clock)
		problems, err := h.s.overdue(t.Context())
		if got := strings.Join(problems, ""); err != nil || got != tc.want {
			t.Errorf("at %s: %q, %v", tc.clock, got, err)
		}
	}
}

// TestScheduler_End_ObjectHasNoDueTime ends a reminder as one whose message the database refuses.
func TestScheduler_End_ObjectHasNoDueTime(t *testing.T) {
	h := parallel(t)
	h.s.cfg.Objects = &contextobjects.Objects{Weights: contextobjects.DefaultWeights(), TTLs: contextobjects.TTLs{Short: time.Hour, Max: 24 * time.Hour}}
	r, id := h.daily(), ""
	h.write(func(tx *store.Tx) error {
		o, err := h.s.cfg.Objects.Activate(tx, contextobjects.ReminderCreated, msg.ContextObject{
			ChatJID: chatJID, Kind: msg.ContextReminder, ID: msg.ContextObjectID(msg.ContextReminder, r.ID), DueAt: r.NextSlot,
		}, h.now.UnixMilli())
		id = o.ID
		return err
	})
	if err := h.s.end(t.Context(), r, "its message cannot be stored"); err != nil {
		t.Fatal(err)
	}
	h.expect(0, msg.ReminderCancelled, r)
	h.write(func(tx *store.Tx) error {
		o, err := rows.ContextObject(t.Context(), tx.Reader, chatJID, id)
		if err == nil && (o == nil || o.DueAt != 0) {
			t.Errorf("the active object of the cancelled reminder: %+v", o)
		}
		return err
	})
}

func TestScheduler_ManyDue_EachOnceInPages(t *testing.T) {
	h := parallel(t)
	const count = 3*page + 1
	for range count {
		h.daily()
	}
	h.at("2026-11-23T08:30:00Z")
	if n := len(h.sent()); n != count {
		t.Errorf("%d messages of %d reminders", n, count)
	}
}

func TestScheduler_Wait_IsUntilTheNextSlot(t *testing.T) {
	h := parallel(t)
	h.daily()
	for clock, want := range map[string]time.Duration{
		"2026-11-23T08:00:00Z": maxWait, "2026-11-23T08:29:50Z": 10 * time.Second, "2026-11-23T08:29:59.999Z": time.Millisecond,
	} {
		h.now = instant(t, clock)
		if wait, err := h.s.fireDue(t.Context()); wait != want || err != nil {
			t.Errorf("at %s: %s, %v, want %s", clock, wait, err, want)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	r := &msg.Reminder{Cron: "*/15 9-17 * * mon-fri", TimeZone: "Europe/Berlin", NextSlot: 1_790_000_000_000, Missed: msg.MissedOne}
	for b.Loop() {
		if d, err := decide(r, 1_795_000_000_000); err != nil || d.slot == 0 {
			b.Fatal(fmt.Sprint(d, err))
		}
	}
}
