package scenarios

import (
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// The gate itself, with quiet times, holds and overflow, is tested beside gated's gateway. These
// scenarios need processes: one for each rule.

func TestGate_QuietTime_JoinsLinesToOneTurn(t *testing.T) {
	f := start(t, harness.Options{})
	f.AddRouteWithImpulse("platform=discord", "main", map[string]any{"quiet_ms": 1500})
	first := f.Say("discord:5", "one")
	for _, text := range []string{"two", "three", "four", "five"} {
		f.Say("discord:5", text)
	}
	f.WantEchoes("discord:5", "one", "two", "three", "four", "five")
	rows, err := f.Store.TurnMessages(f.T.Context(), f.Turn(first).ID)
	if err != nil {
		t.Fatal(err)
	}
	// If the machine stalls for longer than the quiet time there may be more turns.
	if last := rows[len(rows)-1].ReceivedAt; len(rows) < 5 && f.WaitDecided(first).DecidedAt-last < 1500 {
		t.Errorf("the first turn has %d rows after %d ms", len(rows), f.WaitDecided(first).DecidedAt-last)
	}
}

func TestGate_Threshold_HoldsOverRestart(t *testing.T) {
	f := start(t, harness.Options{})
	f.AddRouteWithImpulse("platform=discord", "main", map[string]any{"threshold": 300, "max_hold_ms": 3_600_000})
	held := []int64{f.Say("discord:5", "one"), f.Say("discord:5", "two")}
	waitScanned(f)
	for _, id := range held {
		if m := f.Row(id); m.Disposition != "" {
			t.Fatalf("%q is decided, want held", m.Content)
		}
	}
	f.Kill(harness.Gated)
	f.Restart(harness.Gated)
	f.Say("discord:5", "three")
	f.WantEchoes("discord:5", "one", "two", "three")
	if n := f.TurnCount("discord:5"); n != 1 {
		t.Errorf("%d turns", n)
	}
}

func TestGate_Prefix_OpensIt(t *testing.T) {
	f := start(t, harness.Options{})
	f.AddRouteWithImpulse("platform=discord", "main", map[string]any{"weights": map[string]int{"message": 0}, "max_hold_ms": 3_600_000})
	f.Say("discord:5", "muttering")
	waitScanned(f)
	f.Say("discord:5", "#deploy ship it")
	f.Until("an answer to the prefixed row", func() bool { return len(f.Echoes("discord:5")) >= 2 })
	f.WaitIdle()
}

func TestStale_StoredDuringDowntime_IsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	f.Kill(harness.Gated)
	day := 26 * time.Hour
	past := time.Now().Add(-day).UnixMilli()
	f.Put(msg.Message{ChatJID: "telegram:5", Content: "stored while gated was down", ReceivedAt: past, Timestamp: past})
	f.Restart(harness.Gated)
	f.WantEchoes("telegram:5", "stored while gated was down")
}
