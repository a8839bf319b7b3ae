package main

import (
	"strings"
	"testing"
	"time"
)

// The overview of several machines, of which one has gone.
func TestOverview_SeveralMachines_ShowsWhatRunsWhere(t *testing.T) {
	t.Parallel()
	if page := serve(t, dataFolder(t)).operator().must(200, "GET", "/", "").body; strings.Contains(page, "Machines") {
		t.Errorf("one machine:\n%s", page)
	}
	data := dataFolder(t)
	now := time.Now().UnixMilli()
	shell(t, data, `INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES ('teled', 1, ?, 'connected')`, now-120_000)
	shell(t, data, `INSERT INTO processes (id, daemon, place, addr, version, since, until) VALUES (1, 'gated', 'one:/data', '10.0.0.1:8080', 'v7', ?, ?),
		(2, 'gated', 'two:/data', '10.0.0.2:8080', 'v8', ?, ?), (3, 'teled', 'two:/data', '10.0.0.2:8091', 'v8', ?, ?)`,
		now, now+3_600_000, now, now+3_600_000, now, now-125_000)
	shell(t, data, `INSERT INTO leases (name, process, since) VALUES ('gated', 2, ?), ('teled', 3, ?)`, now, now)
	page := serve(t, data).operator().must(200, "GET", "/", "").body
	contains(t, page, "Machines", "decides, runs agents", "<bdi>one:/data</bdi>", "10.0.0.2:8080", "v7", `<span class="state bad">ended 2 min ago</span>`,
		"the lease of its process on two:/data ended 2 min ago, and no other took over: look at its log there")
}
