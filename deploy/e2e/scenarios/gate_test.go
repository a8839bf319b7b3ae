package scenarios

import (
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// The gate itself, with quiet times, holds and overflow, is tested beside gated's gateway. These
// scenarios are what needs processes: one for each rule.

// reactions makes n reactions to one message.
func reactions(chat string, n int) (rows []msg.Message) {
	for range n {
		rows = append(rows, msg.Message{ChatJID: chat, Verb: msg.VerbReaction, Content: "👍", TargetID: "p0"})
	}
	return rows
}

func TestGate_MaxHold_ReleasesReactions(t *testing.T) {
	f := start(t, harness.Options{Env: []string{"IMPULSE_MAX_HOLD=500ms"}})
	f.Put(reactions("telegram:5", 2)...)
	f.WantEchoes("telegram:5", "👍", "👍")
}

func TestGate_Message_ReleasesHeldReactions(t *testing.T) {
	f := start(t, harness.Options{})
	rows := f.Put(reactions("telegram:5", 2)...)
	waitScanned(f)
	last := f.Say("telegram:5", "see above")
	f.WantEchoes("telegram:5", "👍", "👍", "see above")
	if f.Turn(rows[0]).ID != f.Turn(last).ID {
		t.Error("the reactions are not in the turn of the message")
	}
}

func TestGate_ObservedReactions_AreNotHeld(t *testing.T) {
	f := startOnMention(t, harness.Options{Env: []string{"IMPULSE_MAX_HOLD=100ms"}})
	for _, id := range f.Put(reactions("telegram:-5", 2)...) {
		f.WantDecision(id, msg.Observed, msg.ReasonRouteObserve)
	}
}

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

func TestGate_StickyToken_ReleasesHeldRows(t *testing.T) {
	for _, token := range []string{"#deploy", "@eng", "/new"} {
		t.Run(token, func(t *testing.T) {
			f := start(t, harness.Options{})
			f.AddRouteWithImpulse("platform=discord", "main", map[string]any{"threshold": 1000, "max_hold_ms": 3_600_000})
			held := f.Say("discord:5", "before")
			waitScanned(f)
			f.Reply(f.Say("discord:5", token))
			wantTurnOf(t, f.Turn(held), "main", "")
			f.WantEchoes("discord:5", "before")
		})
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
