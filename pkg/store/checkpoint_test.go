package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// openCheckpointed opens a store that runs no checkpoints by itself, and a
// checkpointer.
func openCheckpointed(t *testing.T) (*store.Store, *store.Checkpointer, string) {
	t.Helper()
	path := storetest.File(t)
	s := storetest.Must(store.Open(t.Context(), store.Options{Path: path}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c := storetest.Must(store.OpenCheckpointer(path))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c, path
}

func walSize(t *testing.T, path string) int64 {
	t.Helper()
	return storetest.Must(os.Stat(path + "-wal"))(t).Size()
}

func TestCheckpoint_RestartsTheLog(t *testing.T) {
	s, c, path := openCheckpointed(t)
	big := strings.Repeat("x", 200<<10)
	storetest.Write(t, s, puts(big, nil))
	full := walSize(t, path)
	if pages := storetest.Must(c.Run(t.Context()))(t).Pages; int64(pages)*4096 < int64(len(big)) {
		t.Errorf("a log of %d pages for %d bytes", pages, len(big))
	}
	for range 3 {
		storetest.Write(t, s, puts("small", nil))
		if pages := storetest.Must(c.Run(t.Context()))(t).Pages; pages > 30 {
			t.Errorf("the log has %d pages after a small row", pages)
		}
	}
	if got := walSize(t, path); got != full {
		t.Errorf("the log grew from %d to %d bytes", full, got)
	}
	if got := contents(t, s); len(got) != 4 || got[0] != big {
		t.Errorf("%d rows", len(got))
	}
}

// TestCheckpoint_LongReader_DoesNotWait keeps a reader open until all writes and
// checkpoints are done.
func TestCheckpoint_LongReader_DoesNotWait(t *testing.T) {
	s, c, path := openCheckpointed(t)
	storetest.Write(t, s, puts("old", nil))
	db := storetest.Must(sql.Open("sqlite3", "file:"+path+"?mode=ro"))(t)
	defer db.Close()
	reader := storetest.Must(db.BeginTx(t.Context(), nil))(t)
	count := func() (n int) {
		t.Helper()
		if err := reader.QueryRow(`SELECT count(*) FROM messages`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 1 {
		t.Fatalf("%d rows", n)
	}
	// A checkpoint that waited as long as other connections do would time out here,
	// and stall the writers.
	ctx, cancel := context.WithTimeout(t.Context(), storetest.MaxWait)
	defer cancel()
	for range 20 {
		storetest.Write(t, s, puts("new", nil))
		storetest.Must(c.Run(ctx))(t)
	}
	if n := count(); n != 1 {
		t.Errorf("the reader's view changed: %d rows", n)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	storetest.Must(c.Run(t.Context()))(t)
	storetest.Write(t, s, puts("last", nil))
	if pages := storetest.Must(c.Run(t.Context()))(t).Pages; pages > 30 {
		t.Errorf("without the reader the log still has %d pages", pages)
	}
}

func TestCheckpoint_WithWriters_LosesNothing(t *testing.T) {
	s, c, _ := openCheckpointed(t)
	const writers, rows = 3, 100
	done := make(chan error, writers)
	for range writers {
		go func() {
			for range rows {
				if err := s.Write(context.Background(), puts("row", nil)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for finished := 0; finished < writers; {
		select {
		case err := <-done:
			finished++
			if err != nil {
				t.Error(err)
			}
		default:
			storetest.Must(c.Run(t.Context()))(t)
		}
	}
	if got := contents(t, s); len(got) != writers*rows {
		t.Errorf("%d rows", len(got))
	}
	if got := storetest.Value[string](t, s, "PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
}

func TestOpenCheckpointer_MissingFile_ReturnsError(t *testing.T) {
	if c, err := store.OpenCheckpointer(t.TempDir() + "/none.db"); err == nil {
		c.Close()
		t.Error("opened")
	}
}

func TestCheckpointer_AfterALargeWrite_LogIsCutBack(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	storetest.Write(t, s, func(tx *store.Tx) error {
		var limit, lower int64
		_, err := tx.GetRow(t.Context(), `PRAGMA journal_size_limit`, nil, &limit)
		if limit != 64<<20 {
			t.Errorf("the limit is %d", limit)
		}
		_, lowErr := tx.GetRow(t.Context(), `PRAGMA journal_size_limit = 1048576`, nil, &lower)
		return errors.Join(err, lowErr, tx.Exec(`INSERT INTO cursors (daemon, key, value) VALUES ('a', 'b', hex(zeroblob(1 << 20)))`))
	})
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if got := size(); got < 2<<20 {
		t.Fatalf("the log has %d bytes", got)
	}
	c := storetest.Must(store.OpenCheckpointer(path))(t)
	defer c.Close()
	storetest.Must(c.Run(t.Context()))(t)
	storetest.Inbound(t, s, storetest.Chat, "the next write")
	if got := size(); got > 1<<20 {
		t.Errorf("the log still has %d bytes", got)
	}
}
