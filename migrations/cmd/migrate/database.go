package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite3"
)

// openDB opens the database. If there is none, it creates an empty one that only its user can read.
func openDB(path string) (*sql.DB, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	file.Close()
	options := url.Values{
		"_busy_timeout": {"10000"}, // ms
		"_foreign_keys": {"off"},   // a migration may rebuild a table that others refer to; see checkReferences
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
func readVersion(db *sql.DB) (version, error) {
	var v version
	var tables int
	err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'`).Scan(&tables)
	if err != nil || tables == 0 {
		return v, err
	}
	err = db.QueryRow(`SELECT version, dirty FROM schema_migrations LIMIT 1`).Scan(&v.number, &v.dirty)
	if errors.Is(err, sql.ErrNoRows) {
		return v, nil
	}
	return v, err
}

// driver is the library's SQLite driver with one difference: a migration and its version are one
// transaction. The library marks the version dirty, migrates, and clears the mark, so that an
// operator has to repair the database after a kill in between.
type driver struct {
	database.Driver
	db     *sql.DB
	target int // version after the migration that runs next, -1 for none
}

func newDriver(db *sql.DB) (*driver, error) {
	base, err := sqlite3.WithInstance(db, &sqlite3.Config{})
	if err != nil {
		return nil, err
	}
	return &driver{Driver: base, db: db}, nil
}

// SetVersion is called with dirty true before a migration runs, and with false after it: then the
// version is stored already, unless there was no script to run.
func (d *driver) SetVersion(number int, dirty bool) error {
	d.target = number
	if dirty {
		return nil
	}
	return d.Driver.SetVersion(number, false)
}

// Run executes one migration.
func (d *driver) Run(migration io.Reader) error {
	script, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	tx, err := d.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(string(script)); err != nil {
		return fmt.Errorf("migrate to version %d: %w; nothing was changed", d.target, err)
	}
	if _, err := tx.Exec(`DELETE FROM schema_migrations`); err != nil {
		return err
	}
	if d.target > 0 {
		if _, err := tx.Exec(`INSERT INTO schema_migrations (version, dirty) VALUES (?, 0)`, d.target); err != nil {
			return err
		}
	}
	return tx.Commit()
}
