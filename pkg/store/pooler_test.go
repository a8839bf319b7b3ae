package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"arizuko/migrations"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// pooler runs PgBouncer before the test's server, and returns the URL of a database through it.
func pooler(t *testing.T, database, mode string) string {
	t.Helper()
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		t.Fatalf("%v: `make setup DB=postgres` installs it", err)
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ini := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\nlisten_addr=\nunix_socket_dir=%s\nauth_type=any\npool_mode=%s\ndefault_pool_size=50\n",
		config.Host, config.Port, config.User, dir, mode)
	for _, err := range []error{os.WriteFile(filepath.Join(dir, "ini"), []byte(ini), 0o644), os.Chmod(dir, 0o777)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("pgbouncer", "-q", filepath.Join(dir, "ini"))
	if os.Geteuid() == 0 { // which it refuses; the server's user can reach its socket
		info, err := os.Stat(config.Host)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	through := "postgres://x@/" + config.Database + "?" + url.Values{"host": {dir}, "port": {"6432"}}.Encode()
	for end := time.Now().Add(30 * time.Second); ; {
		conn, err := pgx.Connect(t.Context(), through)
		if err == nil {
			_ = conn.Close(t.Context())
			return through
		}
		if time.Now().After(end) {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
}

// One that gives each client a connection works; one that shares them by transaction is refused before anything is stored.
func TestOpen_ThroughPgBouncer_SessionModeOnly(t *testing.T) {
	t.Parallel()
	onServer(t)
	for _, mode := range []string{"session", "transaction"} {
		database := storetest.Path(t)
		through := pooler(t, database, mode)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := store.WaitSchema(ctx, through, migrations.Latest(), func(string, error) {})
		if mode == "transaction" {
			if !errors.Is(err, migrations.ErrServer) || !strings.Contains(err.Error(), "pool_mode = session") {
				t.Errorf("%s: %v", mode, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		s := storetest.OpenAt(t, through, nil)
		storetest.Write(t, s, func(tx *store.Tx) error {
			return daemonrows.Heartbeat(tx, daemonrows.Daemon{Name: "gated", Connection: "connected"})
		})
		if rows, err := daemonrows.Daemons(t.Context(), s.Reader); err != nil || len(rows) != 1 {
			t.Errorf("%s: %+v, %v", mode, rows, err)
		}
		pokes, err := store.ListenForPokes(through, "gated", func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		<-pokes.C()
		if err := pokes.Close(); err != nil {
			t.Error(err)
		}
	}
}
