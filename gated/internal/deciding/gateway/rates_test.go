package gateway

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
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

// TestRates_AnyTraffic_CountsAreThoseOfRows: what is counted in memory is what a start
// would read from the rows, and no sender has more turns within the hour than the rate.
func TestRates_AnyTraffic_CountsAreThoseOfRows(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
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
	read := newRates(h.st)
	for _, sender := range senders {
		got, err := h.g.rates.quota(h.t.Context(), "main", sender, 7, now)
		if err != nil {
			h.t.Fatal(err)
		}
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
	p := &plan{cfg: &h.g.cfg, batch: &batch{}, err: store.ErrStale, charges: []charge{{0, "main", "telegram:7"}}}
	h.g.rates.reserve("main", "telegram:7", h.g.now())
	h.g.rates.settle(p)
	second := h.take("#fix go")
	h.is(second, "prefix/prefix_topic main")
}

// TestRates_ClockSetBack_IgnoresWhatIsAhead: else a sender would wait for the clock.
func TestRates_ClockSetBack_IgnoresWhatIsAhead(t *testing.T) {
	t.Parallel()
	h, _ := newRated(t, 1)
	h.clock = h.clock.Add(-2 * time.Hour)
	second := h.take("#fix go", func(m *msg.Message) { m.Timestamp, m.ReceivedAt = h.clock.UnixMilli(), h.clock.UnixMilli() })
	h.is(second, "prefix/prefix_topic main")
}

// The limit of commands is that of the rows: a restart changes nothing, and other senders and chats have their own.
func TestCommands_Flood_OthersAreAnswered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
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
	again := h.take("/ping")
	h.is(again, "command/command ")
}
