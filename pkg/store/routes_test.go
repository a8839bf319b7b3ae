package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
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
			if found, err := tx.DeleteRoute(id); found != want || err != nil {
				t.Errorf("delete %d: %v %v", id, found, err)
			}
		}
		if found, err := tx.UpdateRoute(&changed); !found || err != nil {
			t.Errorf("update: %v %v", found, err)
		}
		found, err := tx.UpdateRoute(&msg.Route{ID: 99})
		if found {
			t.Error("updated a row that does not exist")
		}
		return err
	})
	row, err := s.Route(t.Context(), first.ID)
	if diff := cmp.Diff(&changed, row); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if row, err := s.Route(t.Context(), tie.ID); row != nil || err != nil {
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
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := tx.DeleteRoute(old.ID); return err })
	if fresh := put(); fresh.ID == old.ID {
		t.Error("an earlier decision would point to another route")
	}
}

func TestRoutes_InvalidImpulse_IsAString(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	storetest.Exec(t, path, `INSERT INTO routes (target, impulse_config) VALUES ('a', '{"quiet'), ('b', ''), ('c', '7')`)
	rows, err := s.Routes(t.Context())
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	for i, want := range []string{`"{\"quiet"`, ``, `7`} {
		if got := string(rows[i].Impulse); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if _, err := json.Marshal(rows); err != nil {
		t.Error(err)
	}
}

func TestRoutingVersion_GrowsWithRoutesAndGroupsAlone(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	last := storetest.Must(s.RoutingVersion(t.Context()))(t)
	changed := func(what string, want bool) {
		t.Helper()
		version := storetest.Must(s.RoutingVersion(t.Context()))(t)
		if (version > last) != want || version < last {
			t.Errorf("%s: version %d after %d, grows: want %t", what, version, last, want)
		}
		last = version
	}
	changed("nothing", false)
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In})
	changed("a message", false)
	for _, query := range []string{
		`INSERT INTO routes (target) VALUES ('a'), ('b')`,
		`UPDATE routes SET target = 'c'`,
		`UPDATE routes SET impulse_config = '{}' WHERE id = 2`,
		`INSERT INTO routes (id, target) VALUES (1, 'd') ON CONFLICT (id) DO UPDATE SET target = excluded.target`,
		`DELETE FROM routes`,
		`INSERT INTO registered_groups (folder) VALUES ('a')`,
		`UPDATE registered_groups SET config = '{"observe":"none"}'`,
		`DELETE FROM registered_groups`,
	} {
		storetest.Exec(t, path, query)
		changed(query, true)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutRoute(&msg.Route{Target: "b"}) })
	changed("a route of this process", true)
	storetest.Exec(t, path, `DELETE FROM counters WHERE name = 'routing'`)
	if _, err := s.RoutingVersion(t.Context()); err == nil {
		t.Error("changes are not counted, and no error")
	}
}
