package rows_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/rows"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	later := msg.Route{Seq: 20, Target: "acme"}
	first := msg.Route{Seq: -1, Match: "verb=mention", Target: "acme#observe", Impulse: json.RawMessage(`{"quiet_ms":5}`)}
	tie := msg.Route{Seq: 20, Match: "platform=slack", Target: "builtin:drop"}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for _, r := range []*msg.Route{&later, &first, &tie} {
			if err := tx.PutRoute(r); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := s.Routes(t.Context())
	if diff := cmp.Diff([]msg.Route{first, later, tie}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}

	changed := msg.Route{ID: first.ID, Seq: 30, Target: "acme/eng"}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for id, want := range map[int64]bool{tie.ID: true, 99: false} {
			if found, err := rows.DeleteRoute(tx, id); found != want || err != nil {
				t.Errorf("delete %d: %v %v", id, found, err)
			}
		}
		if found, err := rows.UpdateRoute(tx, &changed); !found || err != nil {
			t.Errorf("update: %v %v", found, err)
		}
		found, err := rows.UpdateRoute(tx, &msg.Route{ID: 99})
		if found {
			t.Error("updated a row that does not exist")
		}
		return err
	})
	row, err := rows.Route(t.Context(), s.Reader, first.ID)
	if diff := cmp.Diff(&changed, row); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if row, err := rows.Route(t.Context(), s.Reader, tie.ID); row != nil || err != nil {
		t.Errorf("deleted row: %+v %v", row, err)
	}
}

func TestPutRoute_DeletedID_IsNotReused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func() (r msg.Route) {
		r.Target = "acme"
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutRoute(&r) })
		return r
	}
	old := put()
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.DeleteRoute(tx, old.ID); return err })
	if fresh := put(); fresh.ID == old.ID {
		t.Error("an earlier decision would point to another route")
	}
}
