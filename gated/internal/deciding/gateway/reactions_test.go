package gateway

import (
	"fmt"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// A backlog of reactions is longer than a page and than a turn. It is folded again after a restart.
func TestGate_ReactionBacklog_OneTurnRestObserved(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const count = 1000
	now := h.clock.UnixMilli()
	rows := make([]*msg.Message, count)
	h.write(func(tx *store.Tx) error {
		for i := range rows {
			rows[i] = &msg.Message{
				ChatJID: dm, PlatformID: fmt.Sprintf("r%d", i), Direction: msg.In, Sender: "telegram:7", Verb: msg.VerbReaction,
				Content: "👍", TargetID: "p0", Source: "teled", Timestamp: now, ReceivedAt: now,
			}
			if _, _, err := tx.PutMessage(rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
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
