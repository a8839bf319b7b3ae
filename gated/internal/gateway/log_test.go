package gateway

import (
	"log/slog"
	"testing"

	"arizuko/pkg/msg"
)

// TestDebugLines_LevelInfo_CostNothing: where the steps are not logged, a
// message pays for a look at the level and no more.
func TestDebugLines_LevelInfo_CostNothing(t *testing.T) {
	g := &Gateway{log: slog.New(slog.DiscardHandler)}
	r := &row{Message: &msg.Message{ID: 1, ChatJID: "telegram:1"}}
	turn := &msg.Turn{ID: 3}
	b := &batch{rows: []*row{r}}
	d := &decider{plan: &plan{}, held: []*row{r}}
	for name, line := range map[string]func(){
		"woken":    func() { g.logWoken([]string{"telegram:1"}, 7) },
		"loaded":   func() { g.logLoaded(b) },
		"resolved": func() { g.logResolved(1)(true) },
		"held":     func() { g.logHeld(d) },
		"waits":    func() { g.logWaits(r, waitsFiles) },
		"decided":  func() { g.logDecided("telegram:1", &decision{row: 1}) },
		"turn":     func() { g.logTurn(turn, 1) },
	} {
		if n := testing.AllocsPerRun(100, line); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
