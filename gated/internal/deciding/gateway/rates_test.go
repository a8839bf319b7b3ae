package gateway

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// newRated has a main group in which a sender may have so many turns an hour, and has had the first one.
func newRated(t *testing.T, rate int) (h *harness, first *msg.Message) {
	t.Helper()
	h = newHarness(t)
	h.configure("main", fmt.Sprintf(`{"rate":%d}`, rate))
	first = h.take("hi")
	h.is(first, "routed/route main")
	return h, first
}

// rated puts count messages of a sender, each a turn of its own, and returns how many
// were answered and the notices that the chat got.
func (h *harness) rated(count int, change ...func(*msg.Message)) (routed int, notices []string) {
	h.t.Helper()
	var rows []*msg.Message
	for range count {
		rows = append(rows, h.put(fmt.Sprintf("#t%d hello", h.posts), change...))
	}
	h.step()
	for _, m := range rows {
		switch got := h.row(m.ID); {
		case got.Disposition == msg.Prefix:
			routed++
		case got.Reason != msg.ReasonRateLimit || got.Disposition != msg.Dropped:
			h.t.Errorf("row %d is %s/%s", m.ID, got.Disposition, got.Reason)
		}
		notices = append(notices, h.replies(m)...)
	}
	return routed, notices
}

// TestRate_Restart_CountsGoOn: the counts are those of the rows.
func TestRate_Restart_CountsGoOn(t *testing.T) {
	h := parallel(t)
	h.configure("main", `{"rate":3}`)
	steps := []struct {
		wait    time.Duration
		rows    int
		routed  int
		notices int
	}{{0, 2, 2, 0}, {30 * time.Minute, 2, 1, 1}, {0, 1, 0, 0}, {31 * time.Minute, 4, 2, 1}, {time.Hour, 3, 3, 0}}
	for i, step := range steps {
		h.wait(step.wait)
		h.restart()
		routed, notices := h.rated(step.rows)
		if routed != step.routed || i != 3 && len(notices) != step.notices {
			t.Errorf("step %d: %d answered, notices %v", i, routed, notices)
		}
	}
}

func TestRate_WithinTheHour_OneNotice(t *testing.T) {
	h := parallel(t)
	h.configure("main", `{"rate":1}`)
	for i, want := range []int{1, 0, 0, 1} {
		if _, notices := h.rated(3); len(notices) != want {
			t.Errorf("round %d: notices %v", i, notices)
		}
		h.wait(21 * time.Minute)
		h.g.rates.prune(h.g.now())
	}
}

// TestRate_ChatsOfOnePass_ShareTheCount: a turn of one chat is missing to the next.
func TestRate_ChatsOfOnePass_ShareTheCount(t *testing.T) {
	h := parallel(t)
	h.configure("main", `{"rate":3}`)
	var rows []*msg.Message
	for chat := range 5 {
		for range 2 {
			rows = append(rows, h.put(fmt.Sprintf("#t%d hi", len(rows)), in(fmt.Sprint("telegram:", 100+chat))))
		}
	}
	h.step()
	routed := 0
	for _, m := range rows {
		if h.row(m.ID).Disposition == msg.Prefix {
			routed++
		}
	}
	if routed != 3 {
		t.Errorf("%d turns", routed)
	}
}

// TestRate_NoLimit_NothingIsCounted, nor is it for groups between which rows are delegated.
func TestRate_NoLimit_NothingIsCounted(t *testing.T) {
	h := parallel(t)
	h.configure("main", `{"rate":0}`)
	if routed, _ := h.rated(100); routed != 100 {
		t.Errorf("%d turns", routed)
	}
	if len(h.g.rates.groups) != 0 {
		t.Errorf("counts %v", h.g.rates.groups)
	}
}

func TestRate_CountsAgeOut(t *testing.T) {
	h := parallel(t)
	h.configure("main", `{"rate":2}`)
	h.rated(5)
	h.clock = h.clock.Add(121 * time.Minute)
	h.g.sweep(t.Context())
	if got := fmt.Sprint(h.g.rates.groups, h.g.rates.notices); got != "map[main:map[]] map[]" {
		t.Errorf("counts %s", got)
	}
}

// TestRates_AnyTraffic_CountsAreThoseOfRows: the counts in memory are those that a start
// would read from the rows, and no sender has more turns within the hour than the rate.
func TestRates_AnyTraffic_CountsAreThoseOfRows(t *testing.T) {
	h := parallel(t)
	h.configure("main", `{"rate":7}`)
	random := rand.New(rand.NewPCG(1, 2))
	senders := []string{"telegram:7", "telegram:8", "telegram:42"}
	for range 150 {
		for range 1 + random.IntN(4) {
			text := []string{"hi", "#fix go", "#docs go", "@eng go", "/new go", "/ping", "#fix"}[random.IntN(7)]
			h.put(text, from(senders[random.IntN(3)]), in(fmt.Sprint("telegram:", random.IntN(3)+1)))
		}
		if random.IntN(3) == 0 {
			h.endTurns()
		}
		h.wait(time.Duration(random.IntN(8)) * time.Minute)
		if random.IntN(10) == 0 {
			h.g.rates.forget("main")
		}
		h.compareRates(senders)
	}
}

// endTurns cancels all queued turns, so that no more rows join them.
func (h *harness) endTurns() {
	h.t.Helper()
	for chat := 1; chat <= 3; chat++ {
		h.put("/stop", in(fmt.Sprint("telegram:", chat)), from("telegram:9"))
	}
	h.step()
}

func (h *harness) compareRates(senders []string) {
	h.t.Helper()
	now := h.g.now()
	read := newRates(h.st, false)
	for _, sender := range senders {
		got := storetest.Must(h.g.rates.quota(h.t.Context(), "main", sender, 7, now))(h.t)
		want, err := read.quota(h.t.Context(), "main", sender, 7, now)
		if err != nil || got != want {
			h.t.Fatalf("%s has %+v, by the rows %+v, %v", sender, got, want, err)
		}
		turns := map[int64]bool{}
		rows, err := rows.RecentTurns(h.t.Context(), h.st.Reader, "main", now-time.Hour.Milliseconds())
		for _, row := range rows {
			if row.Sender == sender {
				turns[row.Turn] = true
			}
		}
		if err != nil || len(turns) > 7 {
			h.t.Fatalf("%s has %d turns, %v", sender, len(turns), err)
		}
	}
}

func TestRates_CommitFails_CountsAreReadAgain(t *testing.T) {
	t.Parallel()
	h, _ := newRated(t, 2)
	row := decide.Row{Message: &msg.Message{ID: 9, Sender: "telegram:7"}, Group: &groupconfig.Members{Rate: 2}}
	p := &plan{
		batch:   &batch{Facts: decide.Facts{Now: h.g.now(), Rows: []decide.Row{row}}},
		effects: []decide.Effect{decide.StoreTurn{Turn: msg.Turn{Folder: "main"}, Entries: []decide.Entry{{Row: 9}}}},
	}
	h.g.rates.expect(p)
	p.err = store.ErrStale
	h.g.rates.settle([]*plan{p})
	h.is(h.take("#fix go"), "prefix/prefix_topic main")
}

// TestRates_ClockSetBack_IgnoresWhatIsAhead: else a sender would wait for the clock.
func TestRates_ClockSetBack_IgnoresWhatIsAhead(t *testing.T) {
	t.Parallel()
	h, _ := newRated(t, 1)
	h.clock = h.clock.Add(-2 * time.Hour)
	h.is(h.take("#fix go", func(m *msg.Message) { m.Timestamp, m.ReceivedAt = h.clock.UnixMilli(), h.clock.UnixMilli() }), "prefix/prefix_topic main")
}

// The limit of commands is that of the rows: a restart changes nothing, and other senders and chats have their own.
func TestCommands_Flood_OthersAreAnswered(t *testing.T) {
	h := parallel(t)
	count := func(rows []*msg.Message) (fates map[string]int, notices int) {
		fates = map[string]int{}
		for _, m := range rows {
			now := h.row(m.ID)
			fates[string(now.Disposition)+"/"+string(now.Reason)]++
			if replies := h.replies(m); now.Disposition == msg.Dropped {
				notices += len(replies)
			}
		}
		return fates, notices
	}
	var flood []*msg.Message
	for range 15 {
		flood = append(flood, h.put("/stop"), h.put("/ping"))
		h.step()
	}
	for range 10 {
		flood = append(flood, h.put("/stop"))
	}
	h.step()
	fates, notices := count(flood)
	diff(t, "fates", fates, map[string]int{"command/command": 20, "dropped/command_limit": 20})
	diff(t, "notices", notices, 1)
	for _, m := range []*msg.Message{h.put("/ping", from("telegram:8")), h.put("/ping", in("telegram:2"))} {
		h.step()
		h.is(m, "command/command ")
	}
	h.wait(time.Minute)
	h.is(h.take("/ping"), "command/command ")
}

// TestRates_TurnStoredByAnother_IsCounted is about the turns of reminders.
func TestRates_TurnStoredByAnother_IsCounted(t *testing.T) {
	t.Parallel()
	h, first := newRated(t, 2)
	h.write(func(tx *store.Tx) error {
		prompt := &msg.Message{ChatJID: "group:main", Direction: msg.In, Sender: "reminder:1", OnBehalfOf: first.Sender, Source: msg.SourceReminder, Content: "water the plants"}
		if _, _, err := tx.PutMessage(prompt); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Broadcast, Folder: "main", ChatJID: dm, TriggerMessageID: prompt.ID, Surface: "telegram-dm", Ceiling: 200}
		if _, err := rows.PutTurn(tx, turn, 1); err != nil {
			return err
		}
		return tx.Decide(prompt.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonReminder, RoutedTo: "main", TurnID: turn.ID}, h.g.now())
	})
	h.g.Recount("main")
	h.is(h.take("#fix go"), "dropped/rate_limit ")
}

// TestGateway_WorkOfAnAgent_IsThatOfItsOrigin: a group's access and rate are asked for the sender whose request an agent
// works on, also after a restart.
func TestGateway_WorkOfAnAgent_IsThatOfItsOrigin(t *testing.T) {
	h := parallel(t)
	h.take("hi")
	root := h.agents.turns[0].ID
	h.configure("main/eng", `{"access":["telegram:5","telegram:6"],"rate":2}`)
	work := func(payer string) *msg.Message {
		return h.put("do it", func(m *msg.Message) {
			m.PlatformID, m.ChatJID, m.Sender, m.OnBehalfOf = "", "group:main/eng", "agent:main", payer
			m.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, RootTurnID: root, Depth: 1, Folder: "main", ChatJID: dm}
		})
	}
	first, stranger, second := work("telegram:5"), work("telegram:7"), work("telegram:5")
	h.step()
	h.is(first, "routed/delegated main/eng")
	h.is(stranger, "dropped/no_access ")
	h.is(second, "routed/delegated main/eng")
	h.restart()
	third, other := work("telegram:5"), work("telegram:6")
	h.step()
	h.is(third, "dropped/rate_limit ")
	h.is(other, "routed/delegated main/eng")
}

// TestGateway_InjectedToken_ElsewhereIsText also has the injected row's access: that of its origin.
func TestGateway_InjectedToken_ElsewhereIsText(t *testing.T) {
	h := parallel(t)
	h.take("hi")
	root := h.agents.turns[0].ID
	h.configure("main", `{"access":["telegram:1"]}`)
	inject := func(chat, payer, text string) *msg.Message {
		return h.put(text, func(m *msg.Message) {
			m.PlatformID, m.ChatJID, m.Sender, m.OnBehalfOf = "", chat, "agent:main", payer
			m.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Injection, RootTurnID: root, Depth: 1, Folder: "main"}
		})
	}
	own, other, command, stranger := inject(dm, "telegram:1", "#mine"), inject("telegram:2", "telegram:1", "#evil"), inject("telegram:2", "telegram:1", "/new"), inject(dm, "telegram:66", "hi")
	h.step()
	h.is(own, "sticky/sticky_topic ")
	h.are("routed/route main", other, command)
	h.is(stranger, "dropped/no_access ")
}
