package pages

import (
	"testing"

	"arizuko/pkg/msg"
)

func TestTurnAt_ButtonsAndTimes_FollowTheState(t *testing.T) {
	for _, tt := range []struct {
		state              msg.TurnState
		notBefore, started int64
		retry, cancel      bool
		since              int64
		waits              string
	}{
		{msg.TurnQueued, 0, 0, false, true, 10, "it is retried"}, {msg.TurnQueued, 2000, 20, true, true, 10, "it is retried, 1 s left"},
		{msg.TurnRunning, 0, 20, false, true, 20, ""}, {msg.TurnDone, 0, 20, false, false, 20, ""},
		{msg.TurnFailed, 0, 20, true, false, 20, ""}, {msg.TurnCancelled, 0, 0, true, false, 10, ""},
	} {
		at := newTurnAt(&msg.Turn{State: tt.state, NotBefore: tt.notBefore, CreatedAt: 10, StartedAt: tt.started, WaitsFor: msg.WaitsRetry}, 1000)
		if at.CanRetry() != tt.retry || at.CanCancel() != tt.cancel || at.Since() != tt.since || at.Waits() != tt.waits {
			t.Errorf("%s until %d: retry %t, cancel %t, since %d, %q", tt.state, tt.notBefore, at.CanRetry(), at.CanCancel(), at.Since(), at.Waits())
		}
	}
}
