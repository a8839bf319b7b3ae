package engagement_test

import (
	"context"
	"database/sql"
	"maps"
	"testing"

	"pgregory.net/rapid"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// openTwice opens a store and another connection to its file.
func openTwice(t *testing.T) (*store.Store, *sql.DB) {
	t.Helper()
	path := storetest.Path(t)
	db, err := sql.Open("sqlite3", path+"?_busy_timeout=10000&_synchronous=OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return storetest.OpenAt(t, path, nil), db
}

// After any events in any order, with routd running or not, the same folder is engaged as in the
// model.
func TestTracker_AnyEvents_SameAsModel(t *testing.T) {
	st, db := openTwice(t)
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t, st, db, seen)
		actions := w.actions()
		maps.Copy(actions, map[string]func(*rapid.T){
			"engage": w.engage, "disengage": w.disengage, "stop": w.stop, "restart": w.restart, "restart again": w.restart,
		})
		w.run(t, actions, 3)
		w.restart(t)
		w.check(t)
	})
	requireSeen(t, seen, "a window is open", "a window is over", "a claim is in force", "a claim is dropped with its turn",
		"a claim takes a place from another folder's window", "a delivery engages: sent", "a delivery engages: ambiguous",
		"a delivery engages no group", "a delivery slides a window", "a delivery while routd is down",
		"a row of an engaged place claims it", "a mention joins a turn", "engagement is ended on request", "engagement is ended by a pin", "a turn goes back to the queue")
}

// Reading all deliveries at the end gives the same result as reading each when it came.
func TestTracker_DeliveriesReadLate_SameAsModel(t *testing.T) {
	st, db := openTwice(t)
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t, st, db, seen)
		cursor, err := st.DaemonCursor(context.Background(), "routd", "deliveries")
		if err != nil {
			t.Fatal(err)
		}
		w.run(t, w.actions(), 2)
		w.check(t)
		w.write(t, func(tx *store.Tx) error {
			for _, p := range w.places {
				if err := factrows.PutEngagement(tx, msg.Engagement{ChatJID: p.chat, Place: p.in}); err != nil {
					return err
				}
			}
			return tx.PutCursor("routd", "deliveries", "0"+cursor)
		})
		w.restart(t)
		w.check(t)
	})
	requireSeen(t, seen, "a window is open", "a window is over", "a claim is in force", "a delivery engages: sent")
}
