//go:build failover

package patroni_test

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/link"
	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/patroni"
)

// sql runs a statement on the server that takes writes. It waits for one: a standby that has just become the leader takes none yet,
// and a suspended server does not answer.
func sql(t *testing.T, c *patroni.Cluster, statement string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		out, err := exec.Command("psql", patroni.URL(c.Addrs())+"&connect_timeout=2", "-qAtc", statement).CombinedOutput()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v\n%s", statement, err, out)
		}
	}
}

// What was committed is there after each kind of failover, and the former primary follows the new one.
func TestCluster_PrimaryFails_StandbyHasAllCommits(t *testing.T) {
	need.Program(t, "patroni", "patroni")
	need.Program(t, "etcd", "etcd-server")
	need.Program(t, "psql", "postgresql")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c, err := patroni.Start(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	sql(t, c, "CREATE TABLE t (n int)")
	for i, fail := range []struct {
		name       string
		begin, end func(n int) error
	}{
		{"killed", c.Kill, c.Revive},
		{"suspended", c.Suspend, c.Resume},
		{"isolated", func(n int) error { c.Isolate(n, link.Hole); return nil }, func(n int) error { c.Isolate(n, link.None); return nil }},
	} {
		primary, err := c.AwaitPrimary(ctx, -1)
		if err != nil {
			t.Fatal(err)
		}
		sql(t, c, "INSERT INTO t VALUES (1)")
		began := time.Now()
		if err := fail.begin(primary); err != nil {
			t.Fatal(err)
		}
		if _, err := c.AwaitPrimary(ctx, primary); err != nil {
			t.Fatal(err)
		}
		sql(t, c, "INSERT INTO t VALUES (2)") // on the new primary
		t.Logf("%s: another is the primary after %s", fail.name, time.Since(began).Round(100*time.Millisecond))
		if err := fail.end(primary); err != nil {
			t.Fatal(err)
		}
		if err := c.AwaitHealthy(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: all follow it after %s", fail.name, time.Since(began).Round(100*time.Millisecond))
		if got, want := sql(t, c, "SELECT count(*) FROM t"), strconv.Itoa(2*(i+1)); got != want {
			t.Fatalf("%s: %s rows after %s commits", fail.name, got, want)
		}
	}
}
