package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/mattn/go-sqlite3"

	"arizuko/migrations/dbcopy"
	"arizuko/pkg/store"
)

const (
	// copyPages is how many pages are copied between two calls of progress: 4 MiB.
	copyPages = 1024
	// A database in WAL mode has 2 in both bytes of its header, and needs files
	// beside it. 1 makes it one file, until the next start sets WAL mode again.
	headerWriteVersion, headerReadVersion = 18, 19
)

// Copy writes the database at src, as it is at one moment, to dst, which is
// created or replaced, with mode 0600. Other processes write meanwhile: it only holds
// a snapshot, so that the write-ahead log cannot start over before Copy returns.
// progress is called about every 4 MiB; an error that it returns ends the copy. The
// copy needs no files beside it, and is on disk when Copy returns.
func Copy(ctx context.Context, src, dst string, progress func(done, total int64) error) error {
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
	if err := copyDatabase(ctx, src, dst, progress); err != nil {
		return fmt.Errorf("copy %s: %w", src, store.Explain(err))
	}
	return needNoOther(file)
}

// CopyServer is Copy for a database on a server: the copy is a file. progress is called every few thousand rows.
func CopyServer(ctx context.Context, src, dst string, progress func(dbcopy.Progress) error) error {
	_, err := dbcopy.Snapshot(ctx, src, dst, dbcopy.Options{Progress: progress})
	if err != nil {
		return fmt.Errorf("copy %s: %w", store.Name(src), store.Explain(err))
	}
	file, err := os.OpenFile(dst, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return needNoOther(file)
}

// needNoOther makes a database, which no process uses, one that needs no files beside it, and puts it on disk.
func needNoOther(file *os.File) error {
	if _, err := file.WriteAt([]byte{1, 1}, headerWriteVersion); err != nil {
		return err
	}
	return file.Sync()
}

func copyDatabase(ctx context.Context, src, dst string, progress func(done, total int64) error) error {
	// Not read-only: the last process that closes the file has to be able to recover its log.
	from, err := connect(src, url.Values{"mode": {"rw"}, "_query_only": {"true"}, "_busy_timeout": {"10000"}})
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := connect(dst, url.Values{"mode": {"rw"}, "_journal_mode": {"OFF"}, "_synchronous": {"OFF"},
		"_locking_mode": {"EXCLUSIVE"}})
	if err != nil {
		return err
	}
	defer to.Close()
	// Without a snapshot of its own, each write of another process would begin the copy again.
	if _, err := from.Exec(`BEGIN; SELECT count(*) FROM sqlite_master`, nil); err != nil {
		return err
	}
	b, err := to.Backup("main", from, "main")
	if err != nil {
		return err
	}
	defer b.Close()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = b.Step(copyPages); err != nil {
			return err
		}
		total := int64(b.PageCount())
		if err := progress(pageSize*(total-int64(b.Remaining())), pageSize*total); err != nil {
			return err
		}
	}
	return b.Close()
}

func dataSource(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: options.Encode()}).String()
}

// connect opens a database without database/sql.
func connect(path string, options url.Values) (*sqlite3.SQLiteConn, error) {
	conn, err := new(sqlite3.SQLiteDriver).Open(dataSource(path, options))
	if err != nil {
		return nil, err
	}
	return conn.(*sqlite3.SQLiteConn), nil
}

// pageSize is SQLite's default, in bytes; only progress depends on it.
const pageSize = 4096

// CopyInfo describes a copy of the database.
type CopyInfo struct {
	Schema int              `json:"schema"` // its version
	Floor  int              `json:"floor"`  // the oldest schema whose programs may use it
	Rows   map[string]int64 `json:"rows"`   // by table
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
	var dirty bool
	err = db.QueryRowContext(ctx,
		`SELECT version, dirty, (SELECT floor FROM schema_floor) FROM schema_migrations LIMIT 1`).
		Scan(&info.Schema, &dirty, &info.Floor)
	if err != nil || dirty {
		return info, fmt.Errorf("the database is not migrated, or a migration of it has failed: see `migrate up` (%w)",
			errors.Join(err, fmt.Errorf("schema %d, dirty %v", info.Schema, dirty)))
	}
	info.Rows, err = countRows(ctx, db)
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

func countRows(ctx context.Context, db *sql.DB) (map[string]int64, error) {
	var list []byte
	err := db.QueryRowContext(ctx,
		`SELECT json_group_array(name) FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
		AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '*"*'`).Scan(&list)
	if err != nil {
		return nil, err
	}
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, name := range names {
		var n int64
		// a name of our own schema
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM "`+name+`"`).Scan(&n); err != nil {
			return nil, err
		}
		counts[name] = n
	}
	return counts, nil
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

// LastRuntimes returns how each folder's newest run was run, of the newest 1,000.
func LastRuntimes(ctx context.Context, r store.Reader) (map[string]string, error) {
	runtimes := map[string]string{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var folder, runtime string
		err := scan(&folder, &runtime)
		if _, newer := runtimes[folder]; !newer {
			runtimes[folder] = runtime
		}
		return true, err
	}, queryLastRuntimes, 1000)
	return runtimes, err
}
