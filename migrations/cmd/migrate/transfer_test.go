package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/migrations"
	"arizuko/migrations/dbcopy"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/store/storetest"
)

// killedAt is a hook that kills the process at the point that MIGRATE_TEST_KILL names, or at none.
func killedAt(point dbcopy.Point) error {
	if string(point) == os.Getenv("MIGRATE_TEST_KILL") {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return nil
}

// newDatabase makes an empty database on the server that `make test DB=postgres` starts.
func newDatabase(t *testing.T) string {
	t.Helper()
	if storetest.Server() == "" {
		t.Skip("without a server; `make test DB=postgres` has one")
	}
	return storetest.Empty(t)
}

// instance makes a data folder with some rows.
func newInstance(t *testing.T, rows int) (data string) {
	t.Helper()
	data = t.TempDir()
	must(t, process(data, "up"))
	db, err := sql.Open("sqlite3", filepath.Join(data, "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at) SELECT 'telegram:1', i, 'in', 'text ' || i, i, i FROM n`, rows); err != nil {
		t.Fatal(err)
	}
	return data
}

func with(cmd *osexec.Cmd, environ ...string) *osexec.Cmd {
	cmd.Env = append(cmd.Env, environ...)
	return cmd
}

// value reads one value of a database.
func value[T any](t *testing.T, driver, database, query string) (v T) {
	t.Helper()
	db, err := sql.Open(driver, database)
	if err == nil {
		defer db.Close()
		err = db.QueryRow(query).Scan(&v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Kills after any time, up to that of a whole copy. The tests of dbcopy end a copy at each of its points.
func TestCopy_KilledAnywhere_TargetIsEmptyOrWhole(t *testing.T) {
	t.Parallel()
	const rows, kills = 20_000, 12
	data, server := newInstance(t, rows), newDatabase(t)
	file := filepath.Join(data, "arizuko.db")
	var whole time.Duration
	kill := func(to string, n int) {
		cmd := with(process(data, "copy", "--to", to), "ARIZUKO_DB="+server)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(whole*time.Duration(n+1)/kills, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed, or done
		timer.Stop()
	}
	complete := func(to string) {
		t.Helper()
		began := time.Now()
		must(t, with(process(data, "copy", "--to", to), "ARIZUKO_DB="+server))
		whole = time.Since(began)
	}
	complete("server")
	for i := range kills {
		kill("file", i)
		if marked := value[int64](t, "sqlite3", file, `SELECT count(*) FROM cursors WHERE daemon = 'migrate'`); marked == 0 {
			if n := value[int64](t, "sqlite3", file, `SELECT count(*) FROM messages`); n != rows {
				t.Fatalf("kill %d left a file with %d messages that daemons would use", i, n)
			}
		}
	}
	complete("file")
	if left, err := filepath.Glob(filepath.Join(data, "*.copying*")); err != nil || left != nil {
		t.Errorf("it leaves %q, %v", left, err)
	}
	server = newDatabase(t)
	for i := range kills {
		kill("server", i)
		if n := value[int64](t, "pgx", server, `SELECT count(*) FROM pg_class WHERE relname = 'messages'`); n > 0 {
			if n := value[int64](t, "pgx", server, `SELECT count(*) FROM messages`); n != rows {
				t.Fatalf("kill %d left a server with %d messages", i, n)
			}
		}
	}
	complete("server")
}

func TestCopy_DaemonRuns_IsRefused(t *testing.T) {
	t.Parallel()
	data := newInstance(t, 1)
	held, err := lockfile.TryLock(filepath.Join(data, "run", "gated.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.WriteFile(filepath.Join(data, "run", "gated.lock"), []byte("42 2026-01-02T03:04:05Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := program{cfg: config{data: data, server: "postgres://u@127.0.0.1:1/x"}, out: &bytes.Buffer{}, at: killedAt}
	for _, to := range []string{"server", "file"} {
		err = p.run([]string{"copy", "--to", to})
		if exitCode(err) != exitLocked || !strings.Contains(err.Error(), "gated.lock is locked by process 42 since 2026-01-02T03:04:05Z: stop all daemons") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestDown_DaemonNeedsMore_IsRefused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if _, err := call(data, migrations.FS, "up"); err != nil {
		t.Fatal(err)
	}
	latest := migrations.Latest()
	for _, tc := range []struct {
		lock, content string
		steps         int
		refused       string // a part of why, "" if it is not
	}{
		{"gated", fmt.Sprintf("4711 2026-11-28T10:00:00Z\nschema %d\n", latest), 1, "gated.lock is locked by process 4711 since 2026-11-28T10:00:00Z) cannot work with schema"},
		{"teled+work", "", 1, "teled+work.lock is locked by another process) cannot"}, // it is starting
		{"gated", fmt.Sprintf("4711 2026-11-28T10:00:00Z\nschema %d\n", latest-1), 1, ""},
		{"launcher", "4711 2026-11-28T10:00:00Z\n", 1, ""},
	} {
		path := filepath.Join(data, "run", tc.lock+".lock")
		held, err := lockfile.TryLock(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = call(data, migrations.FS, "down", strconv.Itoa(tc.steps))
		switch {
		case tc.refused == "" && err != nil, tc.refused != "" && (exitCode(err) != exitLocked || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s %q: %v, want %q", tc.lock, tc.content, err, tc.refused)
		case err != nil:
			mustCall(t, data, migrations.FS, strconv.Itoa(latest), "version")
		default:
			mustCall(t, data, migrations.FS, fmt.Sprintf("schema version %d", latest), "up")
		}
		held.Close()
	}
}

func TestCopy_WrongUsage_IsRefusedWithoutPasswords(t *testing.T) {
	t.Parallel()
	const server, nowhere = "postgres://u:s3cret@127.0.0.1:1/x", "postgres://u:s3cret@127.0.0.1:1/x?connect_timeout=1"
	for _, tc := range []struct {
		server, to string
		code       int
		want       string
	}{
		{"", "server", exitConfig, "has to name the server"},
		{"", "file", exitConfig, "has to name the server"},
		{"", "elsewhere", exitConfig, "want server, file or postgres://"},
		{"", "postgres://u:s3cret@db", exitConfig, "--to: want postgres://user@host/database"},
		{"", "postgres://u:s3cret@db:x/y", exitConfig, "--to: want postgres:"},
		{server, "postgres://u:s3cret@other/x", exitConfig, "name two servers"},
		{server, "server", exitFailure, "run it again"},
		{"", nowhere, exitFailure, "connect"},
		{nowhere, nowhere, exitFailure, "connect"},
	} {
		data := newInstance(t, 1)
		cmd := with(process(data, "copy", "--to", tc.to), "ARIZUKO_DB="+tc.server)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.want) || strings.Contains(string(out), "s3cret") {
			t.Errorf("%+v: exit %d: %s", tc, code, out)
		}
	}
}

func TestReopen_AfterACopy_DaemonsMayStartAgain(t *testing.T) {
	t.Parallel()
	data, server := newInstance(t, 10), newDatabase(t)
	steps := []struct {
		args   []string
		server string
		want   string
	}{
		{[]string{"reopen"}, "", "nothing to do"},
		{[]string{"copy", "--to=" + server}, "", "messages                    10 rows"},
		{[]string{"copy", "--to", "server"}, server, "an earlier call had copied"},
		{[]string{"up"}, "", "nothing to do"},
		{[]string{"reopen"}, "", "it has nothing of what was stored since it was copied to " + dbcopy.Name(server)},
		{[]string{"version"}, server, strconv.Itoa(value[int](t, "sqlite3", filepath.Join(data, "arizuko.db"), `SELECT version FROM schema_migrations`))},
	}
	for _, step := range steps {
		out, err := with(process(data, step.args...), "ARIZUKO_DB="+step.server).CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) {
			t.Errorf("%v: %v: %s", slices.Clone(step.args), err, out)
		}
	}
}
