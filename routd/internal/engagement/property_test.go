package engagement_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Whatever happens, in whatever order, and whether or not routd was there to see it, the same
// folder is engaged as in the model.
func TestEngagementIsThatOfTheModel(t *testing.T) {
	st, reach := storetest.Open(t), map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, st, reach)
		actions := w.actions()
		maps.Copy(actions, map[string]func(*rapid.T){
			"engage": w.engage, "disengage": w.disengage, "stop": w.stop, "restart": w.restart, "restart again": w.restart,
		})
		w.live(t, actions, 3)
		w.restart(t)
		w.check(t)
	})
	isReached(t, reach, "a window is open", "a window is over", "a claim is in force", "a claim is dropped with its turn",
		"a claim takes a place from another folder's window", "a delivery engages: sent", "a delivery engages: ambiguous",
		"a delivery engages nobody", "a delivery slides a window", "a delivery while routd is down",
		"engagement is ended by word", "engagement is ended by a pin", "a turn goes back to the queue")
}

// Whoever reads all deliveries at once, at the end, knows what one knows who read them as they came.
func TestWhenDeliveriesAreReadDoesNotMatter(t *testing.T) {
	st, reach := storetest.Open(t), map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, st, reach)
		cursor, err := st.DaemonCursor(t.Context(), "routd", "deliveries")
		if err != nil {
			t.Fatal(err)
		}
		w.live(t, w.actions(), 2)
		w.check(t)
		w.write(t, func(tx *store.Tx) error {
			for _, p := range w.places {
				if err := tx.PutEngagement(msg.Engagement{ChatJID: p.chat, Place: p.in}); err != nil {
					return err
				}
			}
			return tx.PutCursor("routd", "deliveries", "0"+cursor)
		})
		w.restart(t)
		w.check(t)
	})
	isReached(t, reach, "a window is open", "a window is over", "a claim is in force", "a delivery engages: sent")
}
