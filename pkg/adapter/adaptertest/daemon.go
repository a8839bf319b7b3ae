package adaptertest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// MaxWait bounds the wait for an expected event of a Daemon, which runs in real time.
const MaxWait = 30 * time.Second

// Daemon is a platform's whole daemon with a database of its own. C is its configuration.
type Daemon[C adapter.Config] struct {
	testing.TB
	Program adapter.Program[C]
	Env     []string
	Data    string // the data folder
	Store   *store.Store
	Log     *logText
	db      *sql.DB
}

// NewDaemon makes the data folder of a daemon that is not started yet.
func NewDaemon[C adapter.Config](t testing.TB, p adapter.Program[C], env ...string) *Daemon[C] {
	t.Helper()
	data, err := os.MkdirTemp("", p.Name) // short: the paths of sockets are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	if err := os.WriteFile(filepath.Join(data, "secret"), []byte("a-secret-of-the-suite\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	d := &Daemon[C]{TB: t, Program: p, Data: data, Store: storetest.OpenAt(t, path, nil), Log: &logText{},
		Env: append([]string{"ARIZUKO_DATA=" + data, "POLL_INTERVAL=20ms"}, env...)}
	if d.db, err = sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=10000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.db.Close() })
	return d
}

// Serve runs the daemon until stop is called, or the test ends.
func (d *Daemon[C]) Serve() (stop func()) {
	d.Helper()
	cfg, err := config.Load[C](d.Env)
	if err != nil {
		d.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Program.Serve(ctx, cfg, d.Log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) { // stopped while it starts
			d.Errorf("%s ended with %v", d.Program.Name, err)
		}
	})
	d.Cleanup(stop)
	return stop
}

// Until waits for a condition.
func (d *Daemon[C]) Until(what string, happens func() bool) {
	d.Helper()
	tick, deadline := time.NewTicker(5*time.Millisecond), time.NewTimer(MaxWait)
	defer tick.Stop()
	defer deadline.Stop()
	for !happens() {
		select {
		case <-tick.C:
		case <-deadline.C:
			d.Fatalf("still waiting for %s; the log:\n%s", what, d.Log)
		}
	}
}

// Connection is the state of the connection and its detail, as operators see them.
func (d *Daemon[C]) Connection() (state, detail string) {
	d.Helper()
	all, err := daemonrows.Daemons(d.Context(), d.Store.Reader)
	if err != nil {
		d.Fatal(err)
	}
	for _, row := range all {
		if row.Name == d.Program.Name {
			state, detail = row.Connection, row.Detail
		}
	}
	return state, detail
}

// Text is the first value of a query, "" for none.
func (d *Daemon[C]) Text(query string, args ...any) (value string) {
	d.Helper()
	if err := d.db.QueryRow(query, args...).Scan(&value); err != nil && !errors.Is(err, sql.ErrNoRows) {
		d.Fatal(err)
	}
	return value
}

// Lines are the values of a query with one column.
func (d *Daemon[C]) Lines(query string) (all []string) {
	d.Helper()
	rows, err := d.db.Query(query)
	if err != nil {
		d.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			d.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		d.Fatal(err)
	}
	return all
}

// Exec runs a statement.
func (d *Daemon[C]) Exec(query string, args ...any) {
	d.Helper()
	if _, err := d.db.Exec(query, args...); err != nil {
		d.Fatal(err)
	}
}
