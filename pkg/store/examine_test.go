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
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestReadSchema(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	if got := storetest.Must(store.ReadSchema(t.Context(), path))(t); got != (store.Schema{Version: migrations.Latest(), Floor: got.Floor}) || got.Floor < 1 {
		t.Errorf("read %+v", got)
	}
	change(t, path, `UPDATE schema_migrations SET version = 99, dirty = 1; UPDATE schema_floor SET floor = 98`)
	if diff := cmp.Diff(store.Schema{Version: 99, Dirty: true, Floor: 98}, storetest.Must(store.ReadSchema(t.Context(), path))(t)); diff != "" {
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
	if lines := storetest.Must(store.Damage(t.Context(), path))(t); lines != nil {
		t.Errorf("a good database: %q", lines)
	}
	change(t, path, `CREATE TABLE t (a TEXT); CREATE INDEX i ON t (a); INSERT INTO t VALUES ('abc')`)
	change(t, path, `PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'i'`)
	if lines := storetest.Must(store.Damage(t.Context(), path))(t); len(lines) == 0 {
		t.Error("a lost index was not found")
	}
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
