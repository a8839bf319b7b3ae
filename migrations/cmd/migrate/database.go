package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/database/sqlite3"
	sqlite "github.com/mattn/go-sqlite3"

	"arizuko/migrations"
	"arizuko/migrations/dbcopy"
)

// open opens the database, which on a server is there.
func (c config) open() (*sql.DB, error) {
	if err := c.checkFileSystem(); err != nil {
		return nil, err
	}
	if c.server == "" {
		return openDB(c.dbPath())
	}
	return openServer(c.server)
}

// openServer opens a database of a Postgres server, if the store can use it. Its errors do not contain the password.
func openServer(url string) (*sql.DB, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, refuse("ARIZUKO_DB: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	if err = migrations.CheckPooler(ctx, db); err == nil {
		err = migrations.CheckServer(ctx, db)
	}
	if err == nil {
		return db, nil
	}
	db.Close()
	if err = fmt.Errorf("ARIZUKO_DB: %w", err); errors.Is(err, migrations.ErrServer) {
		return nil, refusal{err}
	}
	return nil, err
}

// serverTimeout is how long a server may take to answer the first question.
const serverTimeout = 15 * time.Second

// openDB opens the database file. If there is none, it creates an empty one that only its user can read.
func openDB(path string) (*sql.DB, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	file.Close()
	options := url.Values{
		"_busy_timeout": {"10000"}, // ms
		"_foreign_keys": {"off"},   // a migration may rebuild a table that others refer to; see brokenReferences
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_txlock":       {"immediate"},
	}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	var mode string
	if err = db.QueryRow(`PRAGMA journal_mode`).Scan(&mode); err == nil && mode != "wal" {
		err = fmt.Errorf("journal mode is %s, not wal: does the file system support shared memory?", mode)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// checkFile refuses a database file of another program, and a damaged one, before anything in its folder is made or
// changed.
func (c config) checkFile() (err error) {
	if c.server != "" || c.missing() {
		return nil
	}
	db, err := openReading(c.dbPath())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// It has tables, and not the one that each of ours has from the first migration on.
	var table string
	var failed sqlite.Error
	err = db.QueryRow(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_migrations'
		AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'schema_floor') LIMIT 1`).Scan(&table)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case errors.As(err, &failed) && failed.Code == sqlite.ErrReadonly:
		return nil // a process that was killed left a journal: who writes rolls it back, or says that it cannot
	case err != nil:
		return fmt.Errorf("read %s: %w", c.dbPath(), err)
	}
	return refuse("%s is the database of another program, which has the table %q: set ARIZUKO_DATA to the folder of "+
		"the instance, or move the file away. Nothing was changed", c.dbPath(), printable(table))
}

// openReading opens a database file for reading. The last process that closes it leaves the write-ahead log as it is.
func openReading(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_busy_timeout=10000")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// version is a row of schema_migrations; the zero value means there is none.
type version struct {
	number int
	dirty  bool
}

func (v version) String() string {
	switch {
	case v.dirty:
		return strconv.Itoa(v.number) + " dirty"
	case v.number == 0:
		return "none"
	default:
		return strconv.Itoa(v.number)
	}
}

// readVersion exists because the library's own treats every error as "no version".
func (c config) readVersion(db *sql.DB) (version, error) {
	var v version
	var tables int
	query := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'`
	if c.server != "" {
		query = `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'schema_migrations'`
	}
	err := db.QueryRow(query).Scan(&tables)
	if err != nil || tables == 0 {
		return v, err
	}
	err = db.QueryRow(`SELECT version, dirty FROM schema_migrations LIMIT 1`).Scan(&v.number, &v.dirty)
	if errors.Is(err, sql.ErrNoRows) {
		return v, nil
	}
	return v, err
}

// driver is a driver of the library with one difference: all migrations of a call and the version are one transaction.
// The library marks the version dirty, migrates, and clears the mark, so that an operator has to repair the database
// after a kill in between; and one between two migrations leaves a schema of neither version.
type driver struct {
	database.Driver
	cfg    config
	db     *sql.DB
	tx     *sql.Tx // nil before the first migration
	insert string  // the version; its parameter is the number
	target int     // version after the migration that runs, -1 for none
	at     func(dbcopy.Point) error
}

func (c config) newDriver(db *sql.DB, at func(dbcopy.Point) error) (d *driver, err error) {
	d = &driver{cfg: c, db: db, at: at, insert: `INSERT INTO schema_migrations (version, dirty) VALUES (?, 0)`}
	if c.server == "" {
		d.Driver, err = sqlite3.WithInstance(db, &sqlite3.Config{})
		return d, err
	}
	d.insert = `INSERT INTO schema_migrations (version, dirty) VALUES ($1, false)`
	d.Driver, err = pgx.WithInstance(db, &pgx.Config{})
	return d, err
}

// Unlock leaves the database locked until the transaction has ended: another machine must not begin before.
func (d *driver) Unlock() error { return nil }

// transact runs steps of the library in a transaction. Nothing is changed if one fails.
func (d *driver) transact(steps func() error) error {
	err := steps()
	defer func() { _ = d.Driver.Unlock() }() // an error says that the steps could not lock it
	if d.tx == nil {
		return err
	}
	defer d.tx.Rollback()
	if err != nil {
		return err
	}
	if err := d.at(applied); err != nil {
		return err
	}
	if err := d.tx.Commit(); err != nil {
		return err
	}
	return d.at(committed)
}

// SetVersion is called with dirty true before a migration runs, and with false after it.
func (d *driver) SetVersion(number int, dirty bool) (err error) {
	d.target = number
	if d.tx == nil {
		if d.tx, err = d.db.Begin(); err != nil {
			return err
		}
	}
	if dirty {
		return nil
	}
	if _, err := d.tx.Exec(`DELETE FROM schema_migrations`); err != nil || number <= 0 {
		return err
	}
	_, err = d.tx.Exec(d.insert, number)
	return err
}

// Run executes one migration. It leaves no row that refers to one that is not there.
func (d *driver) Run(migration io.Reader) error {
	script, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	if _, err := d.tx.Exec(string(script)); err != nil {
		return fmt.Errorf("migrate to version %d: %w; nothing was changed", d.target, err)
	}
	if err := d.cfg.brokenReferences(d.tx); err != nil {
		return fmt.Errorf("migrate to version %d: %w afterwards: report this; nothing was changed", d.target, err)
	}
	return nil
}
