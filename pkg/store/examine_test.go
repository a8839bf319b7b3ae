package store_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/migrations"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestReadSchema(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	if got := must(store.ReadSchema(t.Context(), path))(t); got != (store.Schema{Version: migrations.Latest(), Floor: got.Floor}) || got.Floor < 1 {
		t.Errorf("read %+v", got)
	}
	change(t, path, `UPDATE schema_migrations SET version = 99, dirty = 1; UPDATE schema_floor SET floor = 98`)
	if diff := cmp.Diff(store.Schema{Version: 99, Dirty: true, Floor: 98}, must(store.ReadSchema(t.Context(), path))(t)); diff != "" {
		t.Error(diff)
	}
	if _, err := store.ReadSchema(t.Context(), path+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	for content, want := range map[string]error{"": nil, "this is a text, not a database, and it is longer than the header of one is, which has a hundred bytes": store.ErrDamaged} {
		if err := os.WriteFile(other, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := store.ReadSchema(t.Context(), other); !errors.Is(err, want) || got != (store.Schema{}) {
			t.Errorf("%q: %+v, %v", content, got, err)
		}
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	if lines := must(store.Damage(t.Context(), path))(t); lines != nil {
		t.Errorf("a good database: %q", lines)
	}
	change(t, path, `CREATE TABLE t (a TEXT); CREATE INDEX i ON t (a); INSERT INTO t VALUES ('abc')`)
	change(t, path, `PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'i'`)
	if lines := must(store.Damage(t.Context(), path))(t); len(lines) == 0 {
		t.Error("a lost index was not found")
	}
}

func TestReadWAL(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	if got := must(store.ReadWAL(path))(t); got != (store.WAL{}) {
		t.Errorf("no log: %+v", got)
	}
	change(t, path, `PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('abc')`, func(db *sql.DB) {
		got := must(store.ReadWAL(path))(t)
		frames := (got.Size - 32) / (4096 + 24) // a header, and one before each page
		if got.Pending < 4096 || got.Pending != frames*4096 {
			t.Errorf("before a checkpoint: %+v", got)
		}
		if _, err := db.Exec(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
			t.Fatal(err)
		}
		if after := must(store.ReadWAL(path))(t); after != (store.WAL{Size: got.Size}) {
			t.Errorf("after a checkpoint: %+v", after)
		}
	})
}

// change executes statements as a shell would, and calls fns before the file is closed.
func change(t *testing.T, path, statements string, fns ...func(*sql.DB)) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	for _, fn := range fns {
		fn(db)
	}
}

func TestExamine_Rows(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	change(t, path, `INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, out_state) VALUES
		(1, 'telegram:1', 'out', 5, 5, 'queued'), (2, 'telegram:2', 'out', 6, 6, 'sending'), (3, 'web:main', 'out', 4, 4, 'queued'),
		(4, 'telegram:3', 'out', 7, 7, 'failed'), (5, 'telegram:3', 'out', 1, 1, 'ambiguous'), (6, 'telegram:3', 'out', 8, 8, 'ambiguous'),
		(7, 'telegram:3', 'out', 90, 90, 'sent');
		INSERT INTO deliveries (message_id, part, state, error_class, error) VALUES (4, 0, 'sent', NULL, NULL), (4, 1, 'failed', 'permanent', 'blocked'), (4, 2, 'failed', 'permanent', 'too');
		INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, disposition, reason, decided_at, decision_seq) VALUES
		(10, 'telegram:4', 'in', 20, 20, 'onboarding', 'x', 1, 1), (11, 'telegram:5', 'in', 21, 21, 'onboarding', 'x', 1, 2), (12, 'telegram:5', 'in', 99, 99, 'onboarding', 'x', 1, 3);
		INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, pending_files, files_wanted) VALUES
		(20, 'telegram:6', 'in', 30, 30, 1, 1), (21, 'telegram:6', 'in', 31, 31, 1, 0), (22, 'telegram:6', 'in', 70, 70, 1, 1);
		INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('A', 'telegram:4', 'pending', 9), ('B', 'telegram:9', 'pending', 8);
		INSERT INTO onboarding_requests (code, chat_jid, state, created_at, decided_at) VALUES ('C', 'telegram:5', 'rejected', 1, 2);
		INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at) VALUES ('main', '', 'x:1', 'process', 1, 1), ('main', '', 'x:1', 'docker', 1, 1)`)
	waits := func(rows int, oldest int64, chat string, since int64) store.Waiting {
		return store.Waiting{Rows: rows, Oldest: oldest, ChatJID: chat, Since: since}
	}
	same(t, "by platform", must(s.WaitingByPlatform(t.Context()))(t), []store.PlatformWaiting{
		{Platform: "telegram", Waiting: waits(2, 1, "telegram:1", 5)}, {Platform: "web", Waiting: waits(1, 3, "web:main", 4)},
	})
	same(t, "undelivered", must(s.Undelivered(t.Context(), 2))(t), []store.Undelivered{
		{ID: 6, ChatJID: "telegram:3", State: msg.OutAmbiguous}, {ID: 4, ChatJID: "telegram:3", State: msg.OutFailed, ErrorClass: "permanent", Error: "blocked"},
	})
	same(t, "parked", must(s.ParkedWithoutRequest(t.Context(), 50))(t), waits(1, 11, "telegram:5", 21))
	same(t, "wanted", must(s.WantedWaiting(t.Context(), 50))(t), waits(1, 20, "telegram:6", 30))
	requests, code, err := s.WaitingRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "requests", requests, waits(2, 0, "telegram:9", 8))
	same(t, "code", code, "B")
	same(t, "arrivals", must(s.Arrivals(t.Context()))(t), store.Arrivals{Last: 99, LastID: 12, Step: 70, SteppedA: 7, SteppedB: 10, StepAt: 20})
	same(t, "runtimes", must(s.LastRuntimes(t.Context()))(t), map[string]string{"main": "docker"})
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
