package rows_test

import (
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestRunsDuring(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	// run starts a run at 10·n and ends it 5 later, with an error where n is odd.
	run := func(n int64) int64 {
		turn := gatedtest.Queued(t, s)
		r := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", StartedAt: 10 * n}
		storetest.Write(t, s, func(tx *store.Tx) error {
			if err := rows.StartRun(tx, r, turn.ID); err != nil {
				return err
			}
			return rows.EndRun(tx, r.ID, strings.Repeat("x", int(n%2)), 10*n+5)
		})
		return r.ID
	}
	ids := []int64{run(1), run(2), run(3), run(4)}
	for _, tt := range []struct {
		name        string
		folder      string
		from, until int64
		limit       int
		want        []int64
	}{
		{"all", storetest.Folder, 0, 100, 9, ids},
		{"those within", storetest.Folder, 20, 35, 9, ids[1:3]},
		{"those that reach into it", storetest.Folder, 15, 30, 9, ids[:3]},
		{"the newest", storetest.Folder, 0, 100, 2, ids[2:]},
		{"another folder's", "other", 0, 100, 9, nil},
	} {
		var got []int64
		for _, r := range storetest.Must(s.RunsDuring(t.Context(), tt.folder, "", tt.from, tt.until, tt.limit))(t) {
			got = append(got, r.ID)
			if failed := r.StartedAt/10%2 == 1; failed != (r.Result == "error" && r.Error == "x") {
				t.Errorf("%s: run %d is %q, %q", tt.name, r.ID, r.Result, r.Error)
			}
		}
		differ(t, tt.name, got, tt.want)
	}
}
