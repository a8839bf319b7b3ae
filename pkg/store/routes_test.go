package store_test

import (
	"encoding/json"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

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
