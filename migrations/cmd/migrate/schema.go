package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

// schema is the open database and its migrations.
type schema struct {
	cfg    config
	db     *sql.DB
	steps  *migrate.Migrate
	latest int // the highest version among the files
}

// withSchema opens the database, which it creates if there is none, calls do and closes it.
func withSchema(cfg config, files fs.FS, do func(*schema) error) (err error) {
	src, err := iofs.New(files, ".")
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	defer src.Close()
	latest, err := lastVersion(src)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	db, err := cfg.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	drv, err := cfg.newDriver(db)
	if err != nil {
		return err
	}
	steps, err := migrate.NewWithInstance("files", src, "database", drv)
	if err != nil {
		return err
	}
	return do(&schema{cfg: cfg, db: db, steps: steps, latest: latest})
}

func lastVersion(src source.Driver) (int, error) {
	last, err := src.First()
	for err == nil {
		var next uint
		if next, err = src.Next(last); err == nil {
			last = next
		}
	}
	if errors.Is(err, fs.ErrNotExist) && last > 0 {
		return int(last), nil
	}
	return 0, err
}

// up migrates to the latest version, after keep if the database has rows to keep; changed is false if the database has it
// already. A newer database stays as it is: an older program may be started after an upgrade if the floor allows it.
func (s *schema) up(keep func(*schema, version) error) (changed bool, err error) {
	now, err := s.check()
	if err != nil {
		return false, err
	}
	if now.number > s.latest {
		return false, s.checkFloor(now)
	}
	if now.number > 0 && now.number < s.latest {
		if err := keep(s, now); err != nil {
			return false, err
		}
	}
	if err := s.steps.Up(); err != nil {
		if errors.Is(err, migrate.ErrNoChange) {
			return false, nil
		}
		return false, err
	}
	return true, s.checkReferences()
}

// checkReferences returns an error if a row refers to one that is not there. Migrations run without
// foreign keys, so nothing else finds a mistake in one.
func (s *schema) checkReferences() error {
	if s.cfg.server != "" {
		return nil // it checks each statement
	}
	rows, err := s.db.Query(`SELECT "table", ifnull(rowid, 0), parent FROM pragma_foreign_key_check LIMIT 1`)
	if err != nil {
		return fmt.Errorf("check foreign keys: %w", err)
	}
	defer rows.Close()
	if rows.Next() {
		var table, parent string
		var row int64
		if err := rows.Scan(&table, &row, &parent); err != nil {
			return fmt.Errorf("check foreign keys: %w", err)
		}
		return fmt.Errorf("row %d of %s refers to a row of %s that is not there: restore a backup and report this", row, table, parent)
	}
	return rows.Err()
}

// down goes n steps back, after keep.
func (s *schema) down(n int, keep func(*schema, version) error) error {
	now, err := s.check()
	switch {
	case err != nil:
		return err
	case now.number > s.latest:
		return refuse("the database has schema version %d, this program knows only %d: use the newer program to go back", now.number, s.latest)
	case n > now.number:
		return refuse("cannot go %d steps back: the database has schema version %s", n, now)
	}
	if err := keep(s, now); err != nil {
		return err
	}
	return s.steps.Steps(-n)
}

// check reads the version and returns an error for a dirty one.
func (s *schema) check() (version, error) {
	now, err := s.cfg.readVersion(s.db)
	if err != nil {
		return now, err
	}
	if now.dirty {
		return now, refuse("the database is dirty: another tool started migration %[1]d and did not finish it. "+
			"Restore a backup; or check whether its changes are in the schema, then run in sqlite3 "+
			"UPDATE schema_migrations SET version = %[1]d, dirty = 0 if they are, version = %[2]d if they are not",
			now.number, now.number-1)
	}
	return now, nil
}

// checkFloor returns an error if a newer schema excludes this program.
func (s *schema) checkFloor(now version) error {
	var floor int
	if err := s.db.QueryRow(`SELECT floor FROM schema_floor`).Scan(&floor); err != nil {
		return fmt.Errorf("read schema_floor: %w", err)
	}
	if floor > s.latest {
		return refuse("the database has schema version %d and takes no program older than %d, this one is %d: use the newer program",
			now.number, floor, s.latest)
	}
	return nil
}
