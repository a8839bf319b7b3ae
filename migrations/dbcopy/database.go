package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"arizuko/migrations"
)

// database is a side of a copy. Everything runs on one connection.
type database struct {
	name   string // the path of a file, or the URL of a server without the password
	server bool
	db     *sql.DB
	conn   *sql.Conn
	undo   []string // statements that restore everything prepare has dropped
}

// open opens a database that exists.
func open(ctx context.Context, database string) (*database, error) {
	if IsServer(database) {
		return openServer(ctx, database)
	}
	return openFile(ctx, database)
}

func connect(ctx context.Context, name string, server bool, db *sql.DB) (*database, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return &database{name: name, server: server, db: db, conn: conn}, nil
}

// close ends the connection: the database rolls back an open transaction.
func (d *database) close() { _ = errors.Join(d.conn.Close(), d.db.Close()) }

// run runs statements, each of which may be several.
func (d *database) run(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := d.conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.80s: %w", statement, err)
		}
	}
	return nil
}

// scan reads the row that a query returns.
func (d *database) scan(ctx context.Context, query string, args []any, into ...any) error {
	return d.conn.QueryRowContext(ctx, query, args...).Scan(into...)
}

// begin keeps all others from writing until close. On a server the transaction reads the database as it is then.
func (d *database) begin(ctx context.Context) error {
	if d.server {
		return d.beginServer(ctx)
	}
	return d.run(ctx, "BEGIN IMMEDIATE")
}

// beginSource begins the transaction of a source. It returns an ErrRefused if the source has another schema or if its
// rows are old: they were copied to another database than this target.
func (d *database) beginSource(ctx context.Context, target string) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	if err := d.requireSchema(ctx); err != nil {
		return err
	}
	moved, err := migrations.Moved(ctx, d.conn)
	if err == nil && moved != "" && !strings.HasPrefix(moved, target+markTime) {
		err = refuse("the source was copied to %s, its rows may be old: copy from there, or run `migrate reopen` first",
			moved)
	}
	return err
}

// openTarget opens the target of a copy: a file with rows, to be compared, a server, or a new file in place of another.
func openTarget(ctx context.Context, target string, was old) (*database, error) {
	switch {
	case !IsServer(target) && was == oldHasRows:
		return openFile(ctx, target)
	case !IsServer(target):
		return makeFile(ctx, target+partial)
	}
	to, err := openServer(ctx, target)
	if err != nil {
		return nil, err
	}
	if err := to.begin(ctx); err != nil {
		to.close()
		return nil, err
	}
	return to, nil
}

// fullName names a database in the mark of another one.
func fullName(database string) string {
	if IsServer(database) {
		return Name(database)
	}
	return HostPath(database)
}

func (d *database) requireSchema(ctx context.Context) error {
	migrated, err := d.has(ctx, "schema_migrations")
	if err != nil {
		return err
	}
	if !migrated {
		return refuse("%s is not migrated: run `migrate up`, or name another database", d.name)
	}
	var version int
	var dirty bool
	if err := d.scan(ctx, `SELECT version, dirty FROM schema_migrations LIMIT 1`, nil, &version, &dirty); err != nil {
		return err
	}
	switch want := migrations.Latest(); {
	case dirty:
		return refuse("a migration of %s has failed: see `migrate up`", d.name)
	case version < want:
		return refuse("%s has schema %d and this program copies schema %d: run `migrate up` first", d.name, version,
			want)
	case version > want:
		return refuse("%s has schema %d and this program copies schema %d: use the version of migrate that migrated it",
			d.name, version, want)
	}
	return nil
}

// has reports whether there is a table.
func (d *database) has(ctx context.Context, table string) (exists bool, err error) {
	query := `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1)`
	if d.server {
		query = `SELECT EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
			AND relname = $1)`
	}
	err = d.scan(ctx, query, []any{table}, &exists)
	return exists, err
}

// mark ends the transaction: daemons start on the database no more.
func (d *database) mark(ctx context.Context, moved string) error {
	if _, err := d.conn.ExecContext(ctx, migrations.PutMoved, moved); err != nil {
		return err
	}
	return d.commit(ctx)
}

func (d *database) commit(ctx context.Context) error {
	if !d.server {
		return d.run(ctx, "COMMIT")
	}
	return d.conn.Raw(func(driver any) error {
		tag, err := driver.(*stdlib.Conn).Conn().Exec(ctx, "COMMIT")
		if err == nil && tag.String() != "COMMIT" {
			err = errors.New("the server has rolled the transaction back")
		}
		return err
	})
}

// commitTarget commits a target, or gives a file its name and moves the former one aside.
func (d *database) commitTarget(ctx context.Context, target string, was old) (aside string, err error) {
	if d.server {
		return "", d.commit(ctx)
	}
	return replace(target, was)
}

// prepare makes the schema, and drops indexes, references, triggers and the rows that the schema comes with. It does
// nothing if a server has other rows.
func (d *database) prepare(ctx context.Context, from *database) (filled bool, err error) {
	if d.server {
		tables, err := from.tables(ctx)
		if err != nil {
			return false, err
		}
		return d.prepareServer(ctx, tables)
	}
	if err := d.makeSchema(ctx); err != nil {
		return false, err
	}
	return false, d.unload(ctx, `SELECT 'DROP ' || type || ' "' || name || '"', sql FROM sqlite_schema
		WHERE type IN ('index', 'trigger') AND sql IS NOT NULL`, "BEGIN")
}

// makeSchema makes the schema of this program in an empty database.
func (d *database) makeSchema(ctx context.Context) error {
	steps, err := migrations.Up()
	versions := `CREATE TABLE schema_migrations (version uint64, dirty bool);
		CREATE UNIQUE INDEX version_unique ON schema_migrations (version)`
	if d.server {
		steps, err = migrations.Postgres()
		versions = `CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`
	}
	if err != nil {
		return err
	}
	var statements []string
	for _, step := range steps {
		statements = append(statements, step.SQL)
	}
	statements = append(statements, versions,
		`INSERT INTO schema_migrations VALUES (`+strconv.Itoa(migrations.Latest())+`, false)`)
	if err := d.run(ctx, statements...); err != nil {
		return fmt.Errorf("make the schema in %s: %w", d.name, err)
	}
	return nil
}

// hasRows reports whether there are rows besides those that the schema comes with.
func (d *database) hasRows(ctx context.Context, tables []table) (found bool, err error) {
	for _, t := range tables {
		if t.name == "counters" || t.name == "egress_rules" || found {
			continue
		}
		if err := d.scan(ctx, "SELECT EXISTS (SELECT 1 FROM "+quote(t.name)+t.condition()+")", nil,
			&found); err != nil {
			return false, err
		}
	}
	return found, nil
}

// unload drops everything that slows loading down or would change the loaded rows. A query returns the statements that
// drop and those that make it again.
func (d *database) unload(ctx context.Context, query string, more ...string) error {
	found, err := d.conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer found.Close()
	drop := []string{"DELETE FROM counters", "DELETE FROM egress_rules"}
	for found.Next() {
		var down, up string
		if err := found.Scan(&down, &up); err != nil {
			return err
		}
		drop, d.undo = append(drop, down), append(d.undo, up)
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return err
	}
	return d.run(ctx, append(drop, more...)...)
}

// complete ends the work of prepare, after everything that it dropped was made again.
func (d *database) complete(ctx context.Context) error {
	if d.server {
		return d.run(ctx, "ANALYZE")
	}
	if err := d.commit(ctx); err != nil {
		return err
	}
	var child, parent string
	err := d.scan(ctx, `SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1`, nil, &child, &parent)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("a row of %s refers to a row of %s that is not there", child, parent)
	}
	return err
}

// read returns the rows of a table, without those that are no part of a copy.
func (d *database) read(ctx context.Context, t table) (*rows, error) {
	if !d.server { // SQLite's driver starts a goroutine for each row with a context that may end: rows look at it
		ctx = context.WithoutCancel(ctx)
	}
	found, err := d.conn.QueryContext(ctx, t.selection())
	if err != nil {
		return nil, err
	}
	return newRows(found, len(t.columns)), nil
}

func (d *database) count(ctx context.Context, t table) (n int64, err error) {
	err = d.scan(ctx, "SELECT count(*) FROM "+quote(t.name)+t.condition(), nil, &n)
	return n, err
}

// load writes rows to a table.
func (d *database) load(ctx context.Context, t table, all *rows) error {
	if d.server {
		return d.conn.Raw(func(driver any) error {
			_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, all)
			return err
		})
	}
	insert, err := d.conn.PrepareContext(ctx, "INSERT INTO "+quote(t.name)+" ("+t.list()+") VALUES (?"+
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

// lastID is the last id that was given to a row of a numbered table.
func (d *database) lastID(ctx context.Context, t table) (id int64, err error) {
	if !d.server {
		err = d.scan(ctx, `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)`, []any{t.name}, &id)
		return id, err
	}
	sequence := ""
	if err := d.scan(ctx, `SELECT pg_get_serial_sequence($1, 'id')`, []any{quote(t.name)}, &sequence); err != nil {
		return 0, err
	}
	err = d.scan(ctx, `SELECT greatest(q.last_value - CASE WHEN q.is_called THEN 0 ELSE 1 END, (SELECT max(id) FROM `+
		quote(t.name)+`), 0) FROM `+sequence+` q`, nil, &id)
	return id, err
}

// setLastID is part of the transaction, unlike a server's setval.
func (d *database) setLastID(ctx context.Context, t table, id int64) error {
	if d.server {
		return d.run(ctx, "ALTER TABLE "+quote(t.name)+" ALTER COLUMN id RESTART WITH "+strconv.FormatInt(id+1, 10))
	}
	_, err := d.conn.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = ?;
		INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, t.name, t.name, id)
	return err
}

// numbers are the last ones given to a decision and to a change of a delivery: rows in a file, sequences on a server.
type numbers struct{ decision, delivery int64 }

func (d *database) numbers(ctx context.Context) (n numbers, err error) {
	query := `SELECT coalesce((SELECT value FROM router_state WHERE key = 'decision_seq'), 0),
		coalesce((SELECT value FROM counters WHERE name = 'deliveries'), 0)`
	if d.server {
		query = `SELECT a.last_value, b.last_value FROM decision_numbers a, delivery_numbers b`
	}
	err = d.scan(ctx, query, nil, &n.decision, &n.delivery)
	return n, err
}

// setNumbers makes the next numbers follow these.
func (d *database) setNumbers(ctx context.Context, n numbers) error {
	query := `INSERT INTO router_state (key, value) SELECT 'decision_seq', ?1 WHERE ?1 > 0;
		INSERT INTO counters (name, value) VALUES ('deliveries', ?)`
	if d.server {
		query = `SELECT setval('decision_numbers', $1), setval('delivery_numbers', $2)`
	}
	_, err := d.conn.ExecContext(ctx, query, n.decision, n.delivery)
	return err
}
