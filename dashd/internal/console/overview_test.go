package console

import (
	"testing"

	"arizuko/pkg/msg"
)

func TestSince_PerState(t *testing.T) {
	for _, tt := range []struct {
		state   msg.TurnState
		started int64
		want    int64
	}{
		{msg.TurnQueued, 0, 10}, {msg.TurnQueued, 20, 10}, {msg.TurnRunning, 20, 20},
	} {
		shown := pageTurns(1, []*msg.Turn{{State: tt.state, CreatedAt: 10, StartedAt: tt.started}})
		if got := shown.Lines[0].Since; got != tt.want {
			t.Errorf("%s, started at %d: since %d, want %d", tt.state, tt.started, got, tt.want)
		}
	}
}
