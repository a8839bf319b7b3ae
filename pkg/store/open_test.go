package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestOpen_SetsOptions(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.File(t), nil)
	written := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000",
		"wal_autocheckpoint": "10000", "query_only": "0",
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for pragma, want := range written {
			var got string
			if _, err := tx.GetRow(t.Context(), "PRAGMA "+pragma, nil, &got); err != nil || got != want {
				t.Errorf("writer: %s is %q, want %q (%v)", pragma, got, want, err)
			}
		}
		return nil
	})
	for pragma, want := range map[string]string{"journal_mode": "wal", "busy_timeout": "10000", "query_only": "1"} {
		if got := storetest.Value[string](t, s, "PRAGMA "+pragma); got != want {
			t.Errorf("reader: %s is %q, want %q", pragma, got, want)
		}
	}
	if _, err := s.GetRow(t.Context(), `DELETE FROM messages RETURNING id`, nil, new(int64)); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("a read connection wrote: %v", err)
	}
}

func TestOpen_WrongOption_ReturnsError(t *testing.T) {
	t.Parallel()
	const good = "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=true&_busy_timeout=10000"
	tests := []struct{ name, options, wrong string }{
		{"as they should be", good, ""},
		{"rollback journal", strings.Replace(good, "WAL", "DELETE", 1), `journal_mode is "delete", not "wal"`},
		{"a power cut loses commits", strings.Replace(good, "FULL", "NORMAL", 1), `synchronous is "1", not "2"`},
		{"foreign keys", strings.Replace(good, "keys=true", "keys=false", 1), `foreign_keys is "0", not "1"`},
		{"impatient", strings.Replace(good, "10000", "5000", 1), `busy_timeout is "5000", not "10000"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := storetest.Must(sql.Open("sqlite3", "file:"+storetest.File(t)+tt.options))(t)
			defer db.Close()
			conn := storetest.Must(db.Conn(t.Context()))(t)
			defer conn.Close()
			switch err := store.CheckOptions(t.Context(), conn, 1000); { // 1000 is SQLite's default
			case tt.wrong == "" && err != nil:
				t.Error(err)
			case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
				t.Errorf("error %v, want one about %s", err, tt.wrong)
			}
			if err := store.CheckOptions(t.Context(), conn, 7); err == nil {
				t.Error("a wrong autocheckpoint was not noticed")
			}
		})
	}
}

func TestOpen_UnusableFile_ReturnsError(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("text.db", []byte(strings.Repeat("this is not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"missing file", "nowhere.db", "unable to open"},
		{"missing folder", "nowhere/arizuko.db", "no such file"},
		{"not a database", "text.db", "not a database"},
		{"no write-ahead log possible", ":memory:", `journal_mode is "memory", not "wal"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := store.Open(t.Context(), store.Options{Path: tt.path})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("error %v, want one about %s", err, tt.want)
			}
		})
	}
	if _, err := os.Stat("nowhere.db"); err == nil {
		t.Error("Open created a database")
	}
}

func TestOpen_PathWithOptions_IsAFileName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?mode=memory#%41&_synchronous=OFF.db")
	plain := storetest.File(t)
	if err := os.Rename(plain, path); err != nil {
		t.Fatal(err)
	}
	s := storetest.OpenAt(t, path, nil)
	storetest.Inbound(t, s, storetest.Chat, "hi")
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Errorf("another file was opened: %v", err)
	}
}

func TestWrite_DatabaseFull_FailsUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.File(t), nil)
	big := strings.Repeat("x", 100<<10)
	limit := func(pages int64) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) error {
			_, err := tx.GetRow(t.Context(), fmt.Sprintf("PRAGMA max_page_count=%d", pages), nil, new(int64))
			return err
		})
	}
	storetest.Write(t, s, puts("before", nil))
	limit(storetest.Value[int64](t, s, "PRAGMA page_count") + 10)
	for range 2 {
		var stored int
		for _, err := range s.WriteAll(t.Context(), puts("small", nil), puts(big, nil), puts("tail", nil)) {
			switch {
			case err == nil:
				stored++
			case !errors.Is(err, store.ErrFull), !strings.Contains(err.Error(), "free some space"):
				t.Errorf("error %v", err)
			}
		}
		if got := contents(t, s); stored == 3 || len(got) != stored+1 {
			t.Fatalf("%d of 3 writes succeeded, %d rows are stored", stored, len(got)-1)
		}
	}
	if err := s.Write(t.Context(), puts("there is room for this one", nil)); err != nil {
		t.Error(err)
	}
	if got := storetest.Value[string](t, s, "PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
	limit(1 << 30)
	for _, err := range s.WriteAll(t.Context(), puts(big, nil), puts("after", nil)) {
		if err != nil {
			t.Errorf("with space again: %v", err)
		}
	}
	if got := contents(t, s); got[0] != "before" || got[len(got)-1] != "after" || len(got[len(got)-2]) != len(big) {
		t.Errorf("stored %d rows", len(got))
	}
}

func TestWrite_LockedByShell_ReturnsErrLocked(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, err := tx.GetRow(t.Context(), "PRAGMA busy_timeout=20", nil, new(int64))
		return err
	})
	db := storetest.Must(sql.Open("sqlite3", path))(t)
	defer db.Close()
	conn := storetest.Must(db.Conn(t.Context()))(t)
	defer conn.Close()
	storetest.Must(conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"))(t)
	for _, err := range s.WriteAll(t.Context(), puts("one", nil), puts("two", nil)) {
		if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "open sqlite3 shell") {
			t.Errorf("error %v", err)
		}
	}
	// The lock file is free in the meantime: only the shell blocks writers.
	other := storetest.OpenAt(t, path, nil)
	other.SetLockTimeout(time.Millisecond)
	storetest.Must(conn.ExecContext(t.Context(), "COMMIT"))(t)
	storetest.Write(t, other, puts("three", nil))
	storetest.Write(t, s, puts("four", nil))
	if got := contents(t, s); len(got) != 2 {
		t.Errorf("stored %v", got)
	}
}

// A daemon of root, started before those of the user that the data folder belongs to, makes the files beside
// the database.
func TestOpen_AsRoot_FilesBelongToTheDatabasesUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away: run this test with sudo")
	}
	path := storetest.File(t)
	for _, of := range []string{filepath.Dir(path), path} {
		if err := os.Chown(of, 4242, 4243); err != nil {
			t.Fatal(err)
		}
	}
	s := storetest.OpenAt(t, path, nil)
	storetest.Inbound(t, s, storetest.Chat, "hello")
	for _, suffix := range []string{"-wal", "-shm", ".writelock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 4242 || st.Gid != 4243 {
			t.Errorf("%s belongs to %d:%d", suffix, st.Uid, st.Gid)
		}
	}
}
