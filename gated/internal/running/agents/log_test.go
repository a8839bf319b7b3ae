package agents

import (
	"log/slog"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// TestDebugLines_LevelInfo_CostNothing: where the steps are not logged, a turn
// pays for a look at the level and no more.
func TestDebugLines_LevelInfo_CostNothing(t *testing.T) {
	m := &Manager{log: slog.New(slog.DiscardHandler)}
	r := &run{m: m}
	turn, frame, left := &msg.Turn{ID: 1}, &agentproto.Frame{Result: "hello"}, leftovers{}
	for name, line := range map[string]func(){
		"queued":   func() { m.logQueued(turn) },
		"piped":    func() { r.logPiped(turn) },
		"started":  func() { r.logStarted() },
		"prompt":   func() { r.logPrompt(turn, 1) },
		"frame":    func() { r.logFrame(turn, frame) },
		"answered": func() { r.logAnswer(turn, "hello") },
		"ended":    func() { r.logEnded(left, false) },
	} {
		if n := testing.AllocsPerRun(100, line); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
