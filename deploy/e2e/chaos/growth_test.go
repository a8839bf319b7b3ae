package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"
)

func TestWALUsed_GrowsWhileAReaderHoldsIt_StartsOverAfter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openDB(t, path)
	write := func() {
		t.Helper()
		if _, err := db.Exec(`INSERT INTO t VALUES (zeroblob(100000))`); err != nil {
			t.Fatal(err)
		}
		var busy, pages, copied int
		if err := db.QueryRow(`PRAGMA wal_checkpoint(RESTART)`).Scan(&busy, &pages, &copied); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`PRAGMA journal_mode=wal; PRAGMA busy_timeout=0; CREATE TABLE t (data BLOB)`); err != nil {
		t.Fatal(err)
	}
	write()
	first := usedWAL(t, path)
	write()
	if again := usedWAL(t, path); again > first*11/10 {
		t.Errorf("the log of one write has %d bytes, and %d with no reader after one more", first, again)
	}

	reader, err := openDB(t, path).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.QueryRow(`SELECT count(*) FROM t`).Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	write()
	write()
	write()
	if held := usedWAL(t, path); held < 2*first {
		t.Errorf("the log of one write has %d bytes, and %d after more beside a reader", first, held)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	write()
	write()
	if after := usedWAL(t, path); after > first*11/10 {
		t.Errorf("the log of one write has %d bytes, and %d once the reader has gone", first, after)
	}
}

func openDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

func usedWAL(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used, err := walUsed(f)
	if err != nil {
		t.Fatal(err)
	}
	return used
}
