package pages

import (
	"testing"

	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
)

func TestProcess_EachState_SaidAndMarked(t *testing.T) {
	t.Parallel()
	const now = 1_700_000_000_000
	for name, tc := range map[string]struct {
		daemon, holds, connection string
		quiet                     int64 // ms since the lease was renewed
		does, lease               string
		unwell                    bool
	}{
		"decides":        {"gated", "gated", "connected", 1_000, "decides, runs agents", "renewed", false},
		"runs agents":    {"gated", "", "", 1_000, "runs agents", "renewed", false},
		"works":          {"teled", "telegram", "connecting", 1_000, "works", "renewed", false},
		"cannot work":    {"teled", "telegram", "degraded", 1_000, "works", "renewed", true},
		"does not renew": {"routd", "", "", 7_000, "stands by", "not renewed for 7.0 s", false},
		"hangs":          {"routd", "routd", "connected", store.LeaseTime.Milliseconds() + 20_000, "works", "ended 20 s ago", true},
	} {
		p := daemonrows.Process{Daemon: tc.daemon, Holds: tc.holds, Connection: tc.connection, Now: now, Until: now - tc.quiet + store.LeaseTime.Milliseconds()}
		if does(p) != tc.does || lease(p) != tc.lease || unwell(p) != tc.unwell {
			t.Errorf("%s: %s, %s, %t", name, does(p), lease(p), unwell(p))
		}
	}
}
