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
	e := &env{log: slog.New(slog.DiscardHandler)}
	run, turn, frame, left := &msg.Run{ID: 1}, &msg.Turn{ID: 1}, &agentproto.Frame{Result: "hello"}, &leftovers{}
	for name, line := range map[string]func(){
		"queued":   func() { e.logQueued(turn) },
		"piped":    func() { e.logPiped(1, turn) },
		"started":  func() { e.logStarted(run, 1) },
		"prompt":   func() { e.logPrompt(1, turn, 1) },
		"frame":    func() { e.logFrame(1, turn, frame) },
		"answered": func() { e.logAnswer(1, turn, "hello") },
		"ended":    func() { e.logEnded(run, left, false) },
	} {
		if n := testing.AllocsPerRun(100, line); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
