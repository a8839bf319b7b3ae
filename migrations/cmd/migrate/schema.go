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

// up migrates to the latest version, after keep if the database has rows to keep. The receipt says what became of the rows;
// changed is false if the database has that version already. A newer database stays as it is: an older program may be started
// after an upgrade if the floor allows it.
func (s *schema) up(keep func(*schema, version) error) (receipt string, changed bool, err error) {
	now, err := s.check()
	switch {
	case err != nil:
		return "", false, err
	case now.number > s.latest:
		return "", false, s.checkFloor(now)
	case now.number == s.latest:
		return "", false, nil
	case now.number == 0: // there are no rows
		return "", true, s.steps.Up()
	}
	receipt, err = s.change(now, keep, s.steps.Up)
	return receipt, true, err
}

// down goes n steps back, after keep.
func (s *schema) down(n int, keep func(*schema, version) error) (receipt string, err error) {
	now, err := s.check()
	switch {
	case err != nil:
		return "", err
	case now.number > s.latest:
		return "", refuse("the database has schema version %d, this program knows only %d: use the newer program to go back", now.number, s.latest)
	case n > now.number:
		return "", refuse("cannot go %d steps back: the database has schema version %s", n, now)
	}
	return s.change(now, keep, func() error { return s.steps.Steps(-n) })
}

// change migrates a database with rows. Rows that refer to some that are not there are refused before: each migration checks
// that there are none after it.
func (s *schema) change(now version, keep func(*schema, version) error, migrate func() error) (string, error) {
	if err := s.cfg.brokenReferences(s.db); err != nil {
		return "", refuse("%w, as after a deletion by hand. Nothing was changed: run `migrate repair` first, which empties such references, or deletes rows "+
			"that cannot be without, and keeps a copy of the database", err)
	}
	if err := keep(s, now); err != nil {
		return "", err
	}
	before, err := s.count()
	if err != nil {
		return "", err
	}
	if err := migrate(); err != nil {
		return "", err
	}
	after, err := s.count()
	return receipt(before, after), err
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
