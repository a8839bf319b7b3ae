package gateway

import (
	"log/slog"
	"testing"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestDebugLines_LevelInfo_CostNothing: where the steps are not logged, a
// message pays for a look at the level and no more.
func TestDebugLines_LevelInfo_CostNothing(t *testing.T) {
	l := rowLog{slog.New(slog.DiscardHandler)}
	m := &msg.Message{ID: 1, ChatJID: "telegram:1"}
	turn := storedTurn{turn: &msg.Turn{ID: 3}}
	b := &batch{Facts: decide.Facts{Rows: []decide.Row{{Message: m}}}}
	q, hold, wait, decision := &lookup{}, &decide.Hold{}, &decide.Wait{}, &decide.Decide{}
	for name, line := range map[string]func(){
		"woken":    func() { l.woken(7, "telegram:1") },
		"loaded":   func() { l.loaded(b) },
		"resolved": func() { l.resolved(q) },
		"held":     func() { l.held("telegram:1", hold) },
		"waits":    func() { l.waiting("telegram:1", wait) },
		"decided":  func() { l.decision("telegram:1", decision) },
		"answered": func() { l.serviceAnswered(m, &store.Decision{}) },
		"turn":     func() { l.turnStored(turn, "telegram:1") },
	} {
		if n := testing.AllocsPerRun(100, line); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
