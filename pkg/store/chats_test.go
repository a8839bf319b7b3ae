package store_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestDaemons(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	beat := func(d rows.Daemon) {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.Heartbeat(tx, d) })
	}
	routd := rows.Daemon{Name: "routd", Version: "1", StartedAt: 1, HeartbeatAt: 2, Connection: "connecting"}
	gated := rows.Daemon{Name: "gated", Version: "1", StartedAt: 1, HeartbeatAt: 2, Connection: "connected"}
	beat(routd)
	beat(gated)
	routd = rows.Daemon{Name: "routd", Version: "2", StartedAt: 3, HeartbeatAt: 4, Connection: "degraded", LastEventAt: 5, LastProbeAt: 6, Detail: "x"}
	beat(routd)
	if diff := gocmp.Diff([]rows.Daemon{gated, routd}, storetest.Must(rows.Daemons(t.Context(), s.Reader))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
