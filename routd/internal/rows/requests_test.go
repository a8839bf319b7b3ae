package rows_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/rows"
)

// Rows of any table keep their order, and new ones come directly before the row they are put before.
func TestConnectChat_KeepsTheOrderOfRoutes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	rapid.Check(t, func(rt *rapid.T) {
		var before []msg.Route
		storetest.Write(t, s, func(tx *store.Tx) error {
			old, err := tx.Routes(t.Context())
			for i := 0; err == nil && i < len(old); i++ {
				_, err = rows.DeleteRoute(tx, old[i].ID)
			}
			for i, seq := range rapid.SliceOfN(rapid.Int64Range(-2, 2), 0, 8).Draw(rt, "seqs") {
				if err == nil {
					err = tx.PutRoute(&msg.Route{Seq: seq, Match: fmt.Sprintf("room=%d", i), Target: "builtin:drop"})
				}
			}
			if err == nil {
				before, err = tx.Routes(t.Context())
			}
			return err
		})
		at := rapid.IntRange(0, len(before)).Draw(rt, "at")
		id := int64(0)
		if at < len(before) {
			id = before[at].ID
		}
		added := []msg.Route{{Match: "room=a", Target: "fam"}, {Match: "room=b", Target: "fam"}}
		storetest.Write(t, s, func(tx *store.Tx) error {
			_, err := rows.ConnectChat(tx, &msg.Group{Folder: "fam", Config: []byte(`{}`)}, added, id)
			return err
		})
		after := storetest.Must(s.Routes(t.Context()))(t)
		if i := slices.IndexFunc(after, func(r msg.Route) bool { return r.ID == added[0].ID }); i != at || after[i+1].Match != "room=b" ||
			after[i].Seq != added[0].Seq {
			rt.Fatalf("the new rows are at %d, want %d: %+v", i, at, after)
		}
		after = slices.DeleteFunc(after, func(r msg.Route) bool { return r.Target == "fam" })
		matches := func(rows []msg.Route) (all []string) {
			for _, r := range rows {
				all = append(all, r.Match)
			}
			return all
		}
		if !slices.Equal(matches(before), matches(after)) {
			rt.Fatalf("the order was %v, is %v", matches(before), matches(after))
		}
	})
}
