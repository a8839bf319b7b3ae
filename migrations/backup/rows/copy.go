// Package rows copies databases for backups, checks the copies, and changes a copy before an instance uses it.
package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	"arizuko/pkg/store"
)

// progressInterval is how often a copy reports its size: a quick disk takes 50 MB meanwhile.
const progressInterval = 20 * time.Millisecond

// Copy writes the database at src, as it is at one moment, to dst, which is
// created or replaced, with mode 0600. Other processes write meanwhile, but the write-ahead
// log cannot start over before Copy returns. progress is called again and again with the bytes
// written; an error that it returns ends the copy. The copy needs no files beside it, and is on disk
// when Copy returns.
func Copy(ctx context.Context, src, dst string, progress func(bytes int64) error) error {
	if _, err := os.Stat(src); err != nil {
		return err
	}
	if err := os.Remove(dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Not an existing file, which another user of the machine may have open.
	file, err := os.OpenFile(dst, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	// Not read-only: the last process that closes the database must be able to recover its log.
	db, err := sql.Open("sqlite3", dataSource(src, url.Values{"mode": {"rw"}, "_busy_timeout": {"10000"}}))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := vacuumInto(ctx, db, file, progress); err != nil {
		return fmt.Errorf("copy %s: %w", src, store.Explain(err))
	}
	return file.Sync()
}

func vacuumInto(ctx context.Context, db *sql.DB, file *os.File, progress func(bytes int64) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var copied error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, copied = db.ExecContext(ctx, `VACUUM INTO ?`, file.Name())
	}()
	look := time.NewTicker(progressInterval)
	defer look.Stop()
	for {
		info, err := file.Stat()
		if err == nil {
			err = progress(info.Size())
		}
		if err != nil {
			stop()
			<-done
			return err
		}
		select {
		case <-done:
			return copied
		case <-look.C:
		}
	}
}

func dataSource(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: options.Encode()}).String()
}

// CopyInfo describes a copy of the database.
type CopyInfo struct {
	store.Schema
	Messages int64
}

// InspectCopy reads a copy that no process writes. If thorough, it compares the indexes
// with the tables, which takes several times as long, and checks the foreign keys. The error is an ErrDamaged if
// the copy is broken; a copy of a database that is not migrated, or dirty, is refused too.
func InspectCopy(ctx context.Context, path string, thorough bool) (info CopyInfo, err error) {
	db, err := sql.Open("sqlite3", dataSource(path, url.Values{"mode": {"ro"}, "immutable": {"1"}}))
	if err != nil {
		return info, err
	}
	defer db.Close()
	if err := checkCopy(ctx, db, thorough); err != nil {
		return info, store.Explain(err)
	}
	if info.Schema, err = store.ReadSchema(ctx, path); err != nil || info.Version == 0 || info.Dirty {
		return info, fmt.Errorf("the database is not migrated, or a migration of it has failed: see `migrate up` (%w)",
			errors.Join(err, fmt.Errorf("schema %d, dirty %v", info.Version, info.Dirty)))
	}
	err = db.QueryRowContext(ctx, queryCountMessages).Scan(&info.Messages)
	return info, store.Explain(err)
}

func checkCopy(ctx context.Context, db *sql.DB, thorough bool) error {
	check := "quick_check"
	if thorough {
		check = "integrity_check"
	}
	var result string
	if err := db.QueryRowContext(ctx, `PRAGMA `+check+`(1)`).Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: %s: %s", store.ErrDamaged, check, result)
	}
	if !thorough {
		return nil
	}
	var orphans int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM pragma_foreign_key_check`).Scan(&orphans); err != nil {
		return err
	}
	if orphans > 0 {
		return fmt.Errorf("%w: %d rows refer to rows that are not there", store.ErrDamaged, orphans)
	}
	return nil
}

// idGap is by how much a restored database skips row ids: as many as 90 rows a second use in a year and a half, so
// that no backup is too old.
const idGap = 1 << 32

// PrepareRestored makes the copy at path, which no process uses, the database of an instance. Row ids go on far above
// those of the copy: anything made after it, such as file names, nonces on a platform and open pages of the web chat,
// keeps ids of its own. cancelOpen cancels the work that was under way when the copy was made: answers that were not
// delivered, turns that had not ended, and approvals that were not carried out, whose requests stay pending. now is in
// unix ms.
func PrepareRestored(ctx context.Context, path string, cancelOpen bool, now int64) error {
	db, err := sql.Open("sqlite3", dataSource(path, url.Values{"mode": {"rw"}, "_synchronous": {"FULL"},
		"_foreign_keys": {"true"}, "_txlock": {"immediate"}}))
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return store.Explain(err)
	}
	defer tx.Rollback()
	steps := []step{{updateSkipIDs, []any{idGap}}}
	if cancelOpen {
		steps = append(steps, cancelSteps(now)...)
	}
	for _, s := range steps {
		if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
			return store.Explain(err)
		}
	}
	return store.Explain(tx.Commit())
}

type step struct {
	query string
	args  []any
}

// cancelSteps end the work that was under way. A row with a part that was sent, or may have been, ends as ambiguous:
// it may have arrived.
func cancelSteps(now int64) []step {
	return []step{
		{updateCancelParts, []any{now}}, {updateCancelOutbound, nil}, {deleteOpenSystem, nil},
		{updateReleaseOpenSystem, nil},
		{updateCancelTurns, []any{now}}, {store.BumpState, []any{store.StateDecisionSeq}},
		{updateDropUndecided, []any{now, store.StateDecisionSeq}},
		{updateWithdrawApprovals, nil},
	}
}
