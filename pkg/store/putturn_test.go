package store_test

import (
	"testing"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestPutTurn_RunIsFull_Queues(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run := gatedtest.Begun(t, s, gatedtest.Queued(t, s))
	for i := 2; i <= 16; i++ {
		if got := gatedtest.Piped(t, s, run); got.State != msg.TurnRunning {
			t.Fatalf("turn %d of the run is %s", i, got.State)
		}
	}
	if got := gatedtest.Piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("the 17th turn is %s", got.State)
	}
}
