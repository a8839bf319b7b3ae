// Package storetest opens migrated databases for tests.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"arizuko/migrations"
	"arizuko/pkg/store"
)

// Migrate creates a migrated database file at path.
func Migrate(path string) error {
	content, err := migrated()
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// migrated is the content of a migrated file: migrations take longer than most tests.
var migrated = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "migrated")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "arizuko.db")
	if err := migrate(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// migrate runs all migrations on a new file. Its log is in the file when it returns, since the last connection is
// closed.
func migrate(path string) error {
	db, err := sql.Open("sqlite3", path+"?_journal_mode=WAL&_synchronous=OFF") // no crash test begins here
	if err != nil {
		return err
	}
	defer db.Close()
	steps, err := migrations.Up()
	if err != nil {
		return err
	}
	for _, m := range steps {
		if _, err := db.Exec(m.SQL); err != nil {
			return fmt.Errorf("migration %d %s: %w", m.Version, m.Name, err)
		}
	}
	_, err = db.Exec(`CREATE TABLE schema_migrations (version uint64, dirty bool);
		CREATE UNIQUE INDEX version_unique ON schema_migrations (version);
		INSERT INTO schema_migrations VALUES (?, false)`, migrations.Latest())
	return err
}

// Path creates a migrated database: a file in a folder of the test, or a database on the server that PostgresEnv names.
func Path(t testing.TB) string {
	t.Helper()
	if Server() != "" {
		return database(t)
	}
	return File(t)
}

// File creates a migrated database file in a folder of the test.
func File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arizuko.db")
	if err := Migrate(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Open opens a store on a fresh database, closed when the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenAt(t, Path(t), nil)
}

// OpenAt opens a store on a migrated file, as one more process would.
func OpenAt(t testing.TB, path string, poke func(string)) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), store.Options{Path: path, Autocheckpoint: store.DefaultAutocheckpoint,
		Poke: poke})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Audit returns the audit log of a database, oldest first, as "who: what: detail".
func Audit(t testing.TB, path string) (lines []string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT who || ': ' || what || ': ' || detail FROM audit ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
