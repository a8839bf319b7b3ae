package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the database/sql driver

	"arizuko/migrations"
)

// partial is the end of the name of a file that is not whole yet.
const partial = ".copying"

// file is a database file. Everything runs on one connection.
type file struct {
	path string
	db   *sql.DB
	conn *sql.Conn
	undo []string // statements that make what prepare has dropped
}

// openFile opens a migrated file that a copy reads from or compares with.
func openFile(ctx context.Context, path string) (*file, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, refuse("no database: %w", err)
	}
	f, err := connectFile(ctx, path, url.Values{"mode": {"rw"}, "_busy_timeout": {"10000"}, "_synchronous": {"FULL"}})
	if err != nil {
		return nil, err
	}
	if err := f.requireSchema(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func connectFile(ctx context.Context, path string, options url.Values) (*file, error) {
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path),
		RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	f := &file{path: path, db: db}
	if f.conn, err = db.Conn(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

func (f *file) close() { _ = errors.Join(f.conn.Close(), f.db.Close()) } // SQLite rolls back what is open

func (f *file) requireSchema(ctx context.Context) error {
	var version int
	var dirty bool
	err := f.conn.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations LIMIT 1`).Scan(&version, &dirty)
	if err != nil {
		return refuse("%s is not migrated, run `migrate up`: %w", f.path, err)
	}
	return requireSchema(f.path, version, dirty)
}

func requireSchema(name string, version int, dirty bool) error {
	switch want := migrations.Latest(); {
	case dirty:
		return refuse("a migration of %s has failed: see `migrate up`", name)
	case version < want:
		return refuse("%s has schema %d and this program copies schema %d: run `migrate up` first", name, version, want)
	case version > want:
		return refuse("%s has schema %d and this program copies schema %d: use the version of migrate that migrated it",
			name, version, want)
	}
	return nil
}

// begin keeps all others from writing until close.
func (f *file) begin(ctx context.Context) error {
	_, err := f.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// mark ends the transaction: daemons start on the file no more.
func (f *file) mark(ctx context.Context, moved string) error {
	if _, err := f.conn.ExecContext(ctx, migrations.PutMoved, moved); err != nil {
		return err
	}
	_, err := f.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (f *file) moved(ctx context.Context) (string, error) { return migrations.Moved(ctx, f.conn) }

func (f *file) reopen(ctx context.Context) (moved string, err error) {
	if moved, err = f.moved(ctx); err == nil {
		_, err = f.conn.ExecContext(ctx, migrations.DropMoved)
	}
	return moved, err
}

// tables lists the tables whose rows are copied, with their columns as the file has them: a server's are the same.
func (f *file) tables(ctx context.Context) (all []table, err error) {
	found, err := f.conn.QueryContext(ctx, `SELECT t.name, c.name, c.pk, s.sql LIKE '%AUTOINCREMENT%'
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

// fileRows are rows of a file, as pgx returns those of a server.
type fileRows struct {
	*sql.Rows
	row   []any
	dests []any
}

func (f *file) read(ctx context.Context, t table) (rows, error) {
	// The driver starts a goroutine for each row with a context that may end: summedRows looks at it now and then.
	ctx = context.WithoutCancel(ctx)
	found, err := f.conn.QueryContext(ctx, t.selection()) //nolint:rowserrcheck // callers do, by rows.Err
	if err != nil {
		return nil, err
	}
	r := &fileRows{Rows: found, row: make([]any, len(t.columns)), dests: make([]any, len(t.columns))}
	for i := range r.row {
		r.dests[i] = &r.row[i]
	}
	return r, nil
}

func (r *fileRows) Values() ([]any, error) { return r.row, r.Scan(r.dests...) }

func (r *fileRows) Close() { _ = r.Rows.Close() }

func (f *file) count(ctx context.Context, t table) (n int64, err error) {
	err = f.conn.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(t.name)+t.condition()).Scan(&n)
	return n, err
}

func (f *file) lastID(ctx context.Context, t table) (id int64, err error) {
	err = f.conn.QueryRowContext(ctx, `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)`,
		t.name).Scan(&id)
	return id, err
}

// makeFile makes a database file that has the schema and no rows, in place of what a former copy left there.
func makeFile(ctx context.Context, path string) (*file, error) {
	removeFile(path)
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	// Without a journal: finish writes everything to the disk, and until then the file is worth nothing.
	f, err := connectFile(ctx, path, url.Values{
		"mode": {"rw"}, "_journal_mode": {"OFF"}, "_synchronous": {"OFF"}, "_locking_mode": {"EXCLUSIVE"},
		"_foreign_keys": {"off"},
		"_cache_size":   {"-65536"},
	})
	if err != nil {
		return nil, err
	}
	steps, err := migrations.Up()
	for _, step := range steps {
		if err == nil {
			_, err = f.conn.ExecContext(ctx, step.SQL)
		}
	}
	if err == nil {
		_, err = f.conn.ExecContext(ctx, `CREATE TABLE schema_migrations (version uint64, dirty bool);
			CREATE UNIQUE INDEX version_unique ON schema_migrations (version);
			INSERT INTO schema_migrations VALUES (`+strconv.Itoa(migrations.Latest())+`, false)`)
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("make the schema in %s: %w", path, err)
	}
	return f, nil
}

// prepare drops indexes and triggers, and the rows that the schema comes with.
func (f *file) prepare(ctx context.Context) error {
	found, err := f.conn.QueryContext(ctx,
		`SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL`)
	if err != nil {
		return err
	}
	defer found.Close()
	drop := []string{"DELETE FROM counters"}
	for found.Next() {
		var kind, name, statement string
		if err := found.Scan(&kind, &name, &statement); err != nil {
			return err
		}
		drop, f.undo = append(drop, "DROP "+kind+" "+quote(name)), append(f.undo, statement)
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return err
	}
	return f.run(ctx, append(drop, "BEGIN")...)
}

func (f *file) run(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := f.conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

func (f *file) load(ctx context.Context, t table, all rows) error {
	insert, err := f.conn.PrepareContext(ctx, "INSERT INTO "+quote(t.name)+" ("+t.list()+") VALUES (?"+
		strings.Repeat(", ?", len(t.columns)-1)+")")
	if err != nil {
		return err
	}
	defer insert.Close()
	for all.Next() {
		row, err := all.Values()
		if err != nil {
			return err
		}
		if _, err := insert.ExecContext(context.WithoutCancel(ctx), row...); err != nil { // see read
			return err
		}
	}
	return nil
}

func (f *file) setLastID(ctx context.Context, t table, id int64) error {
	if _, err := f.conn.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = ?`, t.name); err != nil {
		return err
	}
	_, err := f.conn.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, t.name, id)
	return err
}

// complete makes indexes and triggers again, and checks the references.
func (f *file) complete(ctx context.Context, progress func(done, total int) error) error {
	for i, statement := range f.undo {
		if err := f.run(ctx, statement); err != nil {
			return err
		}
		if err := progress(i+1, len(f.undo)); err != nil {
			return err
		}
	}
	if err := f.run(ctx, "COMMIT"); err != nil {
		return err
	}
	var child, parent string
	err := f.conn.QueryRowContext(ctx, `SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1`).Scan(&child,
		&parent)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("a row of %s refers to a row of %s that is not there", child, parent)
	}
	return err
}

// finish closes the file, whole and on disk, with nothing beside it.
func (f *file) finish(ctx context.Context) error {
	var mode string
	if err := f.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil || mode != "wal" {
		return fmt.Errorf("journal mode %q, want wal: %w", mode, err)
	}
	if err := errors.Join(f.conn.Close(), f.db.Close()); err != nil {
		return err
	}
	written, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(written.Sync(), written.Close(), requireAlone(f.path))
}

// requireAlone returns an error if a write-ahead log lies beside a file: SQLite would put what it has into a new one.
func requireAlone(path string) error {
	if _, err := os.Lstat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return refuse("%s-wal is there (%w): another program has the database open, or it is left of one that is gone; end that, or move it away", path, err)
	}
	return nil
}

func removeFile(path string) {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + end) // what is not there, or makes the next step fail
	}
}

// old is what is at the name of a file to be made.
type old int

const (
	oldNone    old = iota
	oldEmpty       // a file without rows, or one that was moved
	oldHasRows     // which may be those of this copy
)

// examineOld looks at what is at the path of the target. It leaves nothing beside it.
func examineOld(ctx context.Context, path string) (old, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return oldNone, requireAlone(path)
	} else if err != nil {
		return oldNone, err
	}
	f, err := openFile(ctx, path)
	if err != nil {
		return oldNone, err
	}
	defer f.close()
	moved, err := f.moved(ctx)
	if err != nil || moved != "" {
		return oldEmpty, err
	}
	empty, err := isEmpty(ctx, f)
	if err != nil || !empty {
		return oldHasRows, err
	}
	return oldEmpty, nil
}

// isEmpty reports whether a file has no rows but those that the schema comes with.
func isEmpty(ctx context.Context, f *file) (bool, error) {
	tables, err := f.tables(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tables {
		if t.name == "counters" {
			continue
		}
		if n, err := f.count(ctx, t); err != nil || n > 0 {
			return false, err
		}
	}
	return true, nil
}

// replace gives the new file its name, and moves what has it aside.
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

// hostPath names a file for operators who read the mark of a server.
func hostPath(path string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return host + ":" + path
}
