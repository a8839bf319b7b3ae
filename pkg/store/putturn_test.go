package store_test

import (
	"testing"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPutTurn_PokesTheAdapter_AndRoutdForAClaim(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 10)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) {
		if daemon != "gated" { // for the rows
			pokes <- daemon
		}
	})
	gatedtest.Queued(t, s)
	gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ClaimsEngagement = true })
	storetest.Write(t, s, func(tx *store.Tx) error { tx.Poke("the end"); return nil })
	for _, want := range []string{"teled", "routd", "teled", "the end"} {
		if got := storetest.Receive(t, "a poke", pokes); got != want {
			t.Errorf("poked %s, want %s", got, want)
		}
	}
}

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
