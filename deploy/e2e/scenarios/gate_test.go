package scenarios

import (
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// reactions are n of them to one message.
func reactions(chat string, n int) (rows []msg.Message) {
	for range n {
		rows = append(rows, msg.Message{ChatJID: chat, Verb: msg.VerbReaction, Content: "👍", TargetID: "p0"})
	}
	return rows
}

func TestAReactionOnlyBacklogIsHeldAndMakesOneTurn(t *testing.T) {
	for _, n := range []int{3, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := start(t, Options{})
			rows := s.Put(reactions("telegram:5", n)...)
			passed(s)
			for _, id := range rows {
				if m := s.Row(id); m.Disposition != "" {
					t.Fatalf("a reaction was not held: %s/%s", m.Disposition, m.Reason)
				}
			}
			// The clock cannot be turned, but the gate is rebuilt from the rows.
			s.Kill(Gated)
			s.Exec(`UPDATE messages SET received_at = received_at - 600000, timestamp = timestamp - 600000`)
			s.Restart(Gated)
			s.Settle()
			if turns := s.Count("telegram:5"); turns != 1 {
				t.Errorf("%d turns", turns)
			}
			for _, id := range rows {
				if m := s.Row(id); m.Disposition != msg.Routed && m.Reason != msg.ReasonReactionOverflow {
					t.Fatalf("a reaction ended as %s/%s", m.Disposition, m.Reason)
				}
			}
		})
	}
}

func TestReactionsAreReleasedByTheClock(t *testing.T) {
	s := start(t, Options{Env: []string{"IMPULSE_MAX_HOLD=500ms"}})
	s.Put(reactions("telegram:5", 2)...)
	s.HasHeard("telegram:5", "👍", "👍")
}

func TestAMessageTakesHeldReactionsAlong(t *testing.T) {
	s := start(t, Options{})
	rows := s.Put(reactions("telegram:5", 2)...)
	passed(s)
	last := s.Say("telegram:5", "see above")
	s.HasHeard("telegram:5", "👍", "👍", "see above")
	if s.Turn(rows[0]).ID != s.Turn(last).ID {
		t.Error("the reactions did not come with the message")
	}
}

func TestReactionsWhereTheGroupOnlyListensAreObserved(t *testing.T) {
	s := listening(t, Options{Env: []string{"IMPULSE_MAX_HOLD=100ms"}})
	for _, id := range s.Put(reactions("telegram:-5", 2)...) {
		s.Becomes(id, msg.Observed, msg.ReasonRouteObserve)
	}
}

func TestQuietTimeGathersLinesIntoOneTurn(t *testing.T) {
	s := start(t, Options{})
	s.RouteWith("platform=discord", "main", map[string]any{"quiet_ms": 1500})
	first := s.Say("discord:5", "one")
	for _, text := range []string{"two", "three", "four", "five"} {
		s.Say("discord:5", text)
	}
	s.HasHeard("discord:5", "one", "two", "three", "four", "five")
	rows, err := s.st.TurnMessages(t.Context(), s.Turn(first).ID)
	if err != nil {
		t.Fatal(err)
	}
	// On a machine that stalls for more than the quiet time there may be more turns.
	if last := rows[len(rows)-1].ReceivedAt; len(rows) < 5 && s.Decided(first).DecidedAt-last < 1500 {
		t.Errorf("%d rows made the first turn after %d ms", len(rows), s.Decided(first).DecidedAt-last)
	}
}

func TestAThresholdHoldsUntilItIsReached(t *testing.T) {
	s := start(t, Options{})
	s.RouteWith("platform=discord", "main", map[string]any{"threshold": 300, "max_hold_ms": 3_600_000})
	held := []int64{s.Say("discord:5", "one"), s.Say("discord:5", "two")}
	passed(s)
	for _, id := range held {
		if m := s.Row(id); m.Disposition != "" {
			t.Fatalf("%q was not held", m.Content)
		}
	}
	s.Kill(Gated)
	s.Restart(Gated)
	s.Say("discord:5", "three")
	s.HasHeard("discord:5", "one", "two", "three")
	if n := s.Count("discord:5"); n != 1 {
		t.Errorf("%d turns", n)
	}
}

func TestHeldRowsGoWhenTheFirstWasHeldForLongEnough(t *testing.T) {
	s := start(t, Options{})
	s.RouteWith("platform=discord", "main", map[string]any{"threshold": 1000, "max_hold_ms": 700})
	s.Put(texts("discord:5", "one", "two")...)
	s.HasHeard("discord:5", "one", "two")
	for _, line := range s.lines(`SELECT decided_at - received_at FROM messages WHERE chat_jid = 'discord:5' AND direction = 'in'`) {
		var ms int
		if _, err := fmt.Sscan(line, &ms); err != nil || ms < 700 {
			t.Errorf("released after %s ms, %v", line, err)
		}
	}
}

func TestAStickyTokenReleasesWhatIsHeld(t *testing.T) {
	for _, token := range []string{"#deploy", "@eng", "/new"} {
		t.Run(token, func(t *testing.T) {
			s := start(t, Options{})
			s.RouteWith("platform=discord", "main", map[string]any{"threshold": 1000, "max_hold_ms": 3_600_000})
			held := s.Say("discord:5", "before")
			passed(s)
			s.Reply(s.Say("discord:5", token))
			isFor(t, s.Turn(held), "main", "")
			s.HasHeard("discord:5", "before")
		})
	}
}

func TestAPrefixOpensTheGate(t *testing.T) {
	s := start(t, Options{})
	s.RouteWith("platform=discord", "main", map[string]any{"weights": map[string]int{"message": 0}, "max_hold_ms": 3_600_000})
	s.Say("discord:5", "muttering")
	passed(s)
	s.Say("discord:5", "#deploy ship it")
	s.Until("the prefixed row is answered", func() bool { return len(s.Heard("discord:5")) >= 2 })
	s.Settle()
}

func TestDowntimeDoesNotCountAsOldAge(t *testing.T) {
	s := start(t, Options{})
	s.Kill(Gated)
	day := 26 * time.Hour
	past := time.Now().Add(-day).UnixMilli()
	s.Put(msg.Message{ChatJID: "telegram:5", Content: "stored while gated was down", ReceivedAt: past, Timestamp: past})
	s.Restart(Gated)
	s.HasHeard("telegram:5", "stored while gated was down")
}
