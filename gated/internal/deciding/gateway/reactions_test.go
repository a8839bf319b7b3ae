package gateway

import (
	"testing"

	"arizuko/pkg/msg"
)

// A backlog of reactions is longer than a page and than a turn. It is folded again after a restart.
func TestGate_ReactionBacklog_OneTurnRestObserved(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const count = 1000
	rows := h.putMany(count, func(_ int, m *msg.Message) { m.Verb, m.Content, m.TargetID = msg.VerbReaction, "👍", "p0" })
	h.step()
	h.is(rows[0], "")
	h.is(rows[count-1], "")

	h.clock = h.clock.Add(maxHold)
	h.restart()
	h.step()
	h.wait(maxHold)

	turns := h.dispatched()
	if len(turns) != 1 || len(turns[0]) > msg.MaxTurnRows {
		t.Fatalf("%d turns, want one of at most %d rows", len(turns), msg.MaxTurnRows)
	}
	for i, m := range rows {
		want := "observed/reaction_overflow main"
		if i >= count-len(turns[0]) {
			want = "routed/route main"
		}
		h.is(m, want)
	}
}
