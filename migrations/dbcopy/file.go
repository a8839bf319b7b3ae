package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	_ "github.com/mattn/go-sqlite3" // the database/sql driver

	"arizuko/migrations"
)

// partial is the end of the name of a file that is not whole yet.
const partial = ".copying"

// openFile opens a migrated file that a copy reads from or compares with.
func openFile(ctx context.Context, path string) (*database, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, refuse("no database: %w", err)
	}
	return connectFile(ctx, path, url.Values{"mode": {"rw"}, "_busy_timeout": {"10000"}, "_synchronous": {"FULL"}})
}

func connectFile(ctx context.Context, path string, options url.Values) (*database, error) {
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path),
		RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	return connect(ctx, path, false, db)
}

// tablesOf lists the tables of a copy as the side that is a file has them: a server's are the same.
func tablesOf(ctx context.Context, from, to *database) ([]table, error) {
	if from.server {
		return to.tables(ctx)
	}
	return from.tables(ctx)
}

// tables lists the tables of a file whose rows are copied, with their columns.
func (d *database) tables(ctx context.Context) (all []table, err error) {
	found, err := d.conn.QueryContext(ctx, `SELECT t.name, c.name, c.pk, s.sql LIKE '%AUTOINCREMENT%'
		FROM pragma_table_list t CROSS JOIN pragma_table_xinfo(t.name) c JOIN sqlite_schema s ON s.name = t.name
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND c.hidden = 0 ORDER BY t.name, c.cid`)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	keys := map[string][]string{} // by table, in the order of the key
	for found.Next() {
		var name, column string
		var key int
		var numbered bool
		if err := found.Scan(&name, &column, &key, &numbered); err != nil {
			return nil, err
		}
		if slices.Contains(notCopied, name) {
			continue
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, table{name: name, where: copiedRows[name], numbered: numbered})
		}
		t := &all[len(all)-1]
		t.columns = append(t.columns, column)
		if key > 0 {
			keys[name] = append(keys[name], make([]string, max(0, key-len(keys[name])))...)
			keys[name][key-1] = column
		}
	}
	for i := range all {
		all[i].key = keys[all[i].name]
	}
	return all, found.Err()
}

// makeFile makes an empty database file, in place of one that a former copy left.
func makeFile(ctx context.Context, path string) (*database, error) {
	removeFile(path)
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	// Without a journal: finish writes everything to the disk, and until then the file is worth nothing.
	return connectFile(ctx, path, url.Values{
		"mode": {"rw"}, "_journal_mode": {"OFF"}, "_synchronous": {"OFF"}, "_locking_mode": {"EXCLUSIVE"},
		"_foreign_keys": {"off"},
		"_cache_size":   {"-65536"},
	})
}

// finish closes a target that is a file, whole and on disk, with nothing beside it. The next start sets WAL mode.
func (d *database) finish() error {
	if d.server {
		return nil
	}
	if err := errors.Join(d.conn.Close(), d.db.Close()); err != nil {
		return err
	}
	written, err := os.OpenFile(d.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(written.Sync(), written.Close(), requireAlone(d.name))
}

// requireAlone returns an error if a write-ahead log lies beside a file: SQLite would write it into a new file.
func requireAlone(path string) error {
	if _, err := os.Lstat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return refuse("%s-wal is there (%w): another program has the database open, or it is left of one "+
			"that is gone; end that, or move it away", path, err)
	}
	return nil
}

func removeFile(path string) {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + end) // it is not there, or makes the next step fail
	}
}

// old is the state of a path at which a file is to be made.
type old int

const (
	oldNone    old = iota
	oldEmpty       // a file without rows, or one that was moved
	oldHasRows     // which may be those of this copy
)

// examineOld looks at the path of the target. It leaves nothing beside it.
func examineOld(ctx context.Context, path string) (old, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return oldNone, requireAlone(path)
	} else if err != nil {
		return oldNone, err
	}
	d, err := openFile(ctx, path)
	if err != nil {
		return oldNone, err
	}
	defer d.close()
	if err := d.requireSchema(ctx); err != nil {
		return oldNone, err
	}
	moved, err := migrations.Moved(ctx, d.conn)
	if err != nil || moved != "" {
		return oldEmpty, err
	}
	tables, err := d.tables(ctx)
	if err != nil {
		return oldNone, err
	}
	if has, err := d.hasRows(ctx, tables); err != nil || has {
		return oldHasRows, err
	}
	return oldEmpty, nil
}

// replace gives the new file its name, and moves the former file aside.
func replace(path string, was old) (aside string, err error) {
	if was != oldNone {
		if err := requireAlone(path); err != nil {
			return "", err
		}
		if aside, err = asideName(path); err != nil {
			return "", err
		}
		if err := os.Rename(path, aside); err != nil {
			return "", err
		}
	}
	if err := os.Rename(path+partial, path); err != nil {
		return aside, err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return aside, err
	}
	return aside, errors.Join(folder.Sync(), folder.Close())
}

// asideName returns a name that nothing has.
func asideName(path string) (string, error) {
	for n := 1; ; n++ {
		name := path + ".before-copy-" + strconv.Itoa(n)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// HostPath names a file or a folder for operators who read it on another machine.
func HostPath(path string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return host + ":" + path
}
