package gateway

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestMeter_Gates_CountHeldRowsAndHowLong(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	now := time.UnixMilli(100_000)
	m := newMeter(reg, storetest.Open(t), func() time.Time { return now })
	held := func(count int, first int64) *decide.State {
		s := &decide.State{}
		s.Gate.Count, s.Gate.First = count, first
		return s
	}
	m.changed(held(0, 0), held(2, 90_000), now)
	m.changed(held(2, 90_000), held(3, 90_000), now) // one more
	if n := testutil.ToFloat64(m.held); n != 3 {
		t.Errorf("%v rows held, not 3", n)
	}
	m.changed(held(3, 90_000), held(1, 95_000), now) // a group of rows that is not complete stays
	m.forgotten(held(1, 95_000))                     // read again
	m.changed(held(0, 0), held(1, 95_000), now)
	m.changed(held(1, 95_000), held(0, 0), now)
	if n := testutil.ToFloat64(m.held); n != 0 {
		t.Errorf("%v rows held, not 0", n)
	}
	families := storetest.Must(reg.Gather())(t)
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); f.GetName() == "arizuko_gate_hold_seconds" && (h.GetSampleCount() != 2 || h.GetSampleSum() != 15) {
			t.Errorf("%d releases after %v s, not 2 after 10 and 5", h.GetSampleCount(), h.GetSampleSum())
		}
	}
}

func TestMeter_WaitingRows_AreReadAtTheScrape(t *testing.T) {
	t.Parallel()
	st, reg := storetest.Open(t), prometheus.NewRegistry()
	newMeter(reg, st, func() time.Time { return time.UnixMilli(60_000) })
	for _, at := range []int64{20_000, 30_000} {
		if _, _, err := storetest.Put(t.Context(), st, &msg.Message{ChatJID: "telegram:1", Direction: msg.In, ReceivedAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP arizuko_rows_waiting Inbound rows without a decision, and those parked until their chat is approved; at most 20,000 are counted.
# TYPE arizuko_rows_waiting gauge
arizuko_rows_waiting{state="onboarding"} 0
arizuko_rows_waiting{state="undecided"} 2
# HELP arizuko_rows_waiting_oldest_seconds Age of the oldest inbound row that waits, 0 for none.
# TYPE arizuko_rows_waiting_oldest_seconds gauge
arizuko_rows_waiting_oldest_seconds{state="onboarding"} 0
arizuko_rows_waiting_oldest_seconds{state="undecided"} 40
`), "arizuko_rows_waiting", "arizuko_rows_waiting_oldest_seconds")
	if err != nil {
		t.Error(err)
	}
}

// TestDebugLines_LevelInfo_CostNothing: where the steps are not logged, a
// message pays for a look at the level and no more.
func TestDebugLines_LevelInfo_CostNothing(t *testing.T) {
	l := rowLog{slog.New(slog.DiscardHandler)}
	m := &msg.Message{ID: 1, ChatJID: "telegram:1"}
	turn := storedTurn{turn: &msg.Turn{ID: 3}}
	b := &batch{Facts: decide.Facts{Rows: []decide.Row{{Message: m}}}}
	q, hold, wait := &lookup{}, &decide.Hold{}, &decide.Wait{}
	for name, line := range map[string]func(){
		"woken":    func() { l.woken(7, "telegram:1") },
		"loaded":   func() { l.loaded(b) },
		"resolved": func() { l.resolved(q) },
		"held":     func() { l.held("telegram:1", hold) },
		"waits":    func() { l.waiting("telegram:1", wait) },
		"decided":  func() { l.decided(1, "telegram:1", msg.Routed, msg.ReasonRoute, "main", 0) },
		"turn":     func() { l.turnStored(turn, "telegram:1") },
	} {
		if n := testing.AllocsPerRun(100, line); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
