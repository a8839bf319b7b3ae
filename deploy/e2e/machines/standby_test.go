package machines

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/migrations"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/postgres"
)

// A commit that can be seen, but is not on the synchronous standby, is not reported as stored until it is there.
func TestStore_CommitNotOnStandby_IsAwaited(t *testing.T) {
	need.Verify(t)
	server, err := postgres.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	steps, err := migrations.Postgres()
	if err == nil {
		err = storetest.MigratePostgres(t.Context(), server.URL(), steps)
	}
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	proxy, err := storetest.NewProxy(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	s, err := store.Open(t.Context(), store.Options{Path: proxy.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	exec(`ALTER SYSTEM SET synchronous_standby_names = 'absent'`)
	exec(`SELECT pg_reload_conf()`)
	written := make(chan error, 1)
	write := func() {
		written <- s.Write(context.Background(), func(tx *store.Tx) error { return tx.PutCursor("gated", "key", "7") })
	}
	go write()
	waiting := awaitWaiter(t, admin, func() {
		select {
		case <-written: // the server did not know the setting yet
			go write()
		default:
		}
	})
	proxy.Cut() // the answer is lost
	proxy.Heal()
	exec(`SELECT pg_cancel_backend($1)`, waiting) // it is committed on this server alone
	select {
	case err := <-written:
		t.Fatalf("stored with %v, although no standby has it", err)
	case <-time.After(2 * time.Second):
	}
	exec(`ALTER SYSTEM RESET synchronous_standby_names`)
	exec(`SELECT pg_reload_conf()`)
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// awaitWaiter waits until a commit waits for the standby, and returns the process of the server that does. It
// calls again before each look.
func awaitWaiter(t *testing.T, admin *sql.DB, again func()) (pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	err := harness.Await(ctx, "a commit that waits for the standby", func() (bool, error) {
		again()
		err := admin.QueryRowContext(ctx, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`).Scan(&pid)
		return pid > 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
