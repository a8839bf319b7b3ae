package scenarios

import (
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// The gate itself, with quiet times, holds and overflow, is tested beside gated's gateway.

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

func TestStale_StoredDuringDowntime_IsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	f.Kill(harness.Gated)
	day := 26 * time.Hour
	past := time.Now().Add(-day).UnixMilli()
	f.Put(msg.Message{ChatJID: "telegram:5", Content: "stored while gated was down", ReceivedAt: past, Timestamp: past})
	f.Restart(harness.Gated)
	f.WantEchoes("telegram:5", "stored while gated was down")
}
