package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"arizuko/migrations/dbcopy"
)

// schema is the open database and its migrations.
type schema struct {
	cfg    config
	db     *sql.DB
	steps  *migrate.Migrate
	driver *driver
	latest int // the highest version among the files
	at     func(dbcopy.Point) error
}

// withSchema opens the database, which it creates if there is none, calls do and closes it.
func (p program) withSchema(cfg config, do func(*schema) error) (err error) {
	files, at := p.files, p.at
	if at == nil {
		at = func(dbcopy.Point) error { return nil }
	}
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
	drv, err := cfg.newDriver(db, at)
	if err != nil {
		return err
	}
	steps, err := migrate.NewWithInstance("files", src, "database", drv)
	if err != nil {
		return err
	}
	return do(&schema{cfg: cfg, db: db, steps: steps, driver: drv, latest: latest, at: at})
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

// up migrates to the latest version, after keep if the database has rows to keep. done is nil if there were no rows;
// changed is false if the database has that version already. A newer database stays as it is: an older program may be
// started after an upgrade if the floor allows it.
func (s *schema) up(keep keeper) (done *change, changed bool, err error) {
	now, err := s.check()
	switch {
	case err != nil:
		return nil, false, err
	case now.number > s.latest:
		return nil, false, s.checkFloor(now)
	case now.number == s.latest:
		return nil, false, nil
	case now.number == 0: // there are no rows
		return nil, true, s.driver.transact(s.steps.Up)
	}
	done, err = s.change(now, keep, s.steps.Up)
	return done, true, err
}

// down goes n steps back, after keep.
func (s *schema) down(n int, keep keeper) (done *change, err error) {
	now, err := s.check()
	switch {
	case err != nil:
		return nil, err
	case now.number > s.latest:
		return nil, refuse("the database has schema version %d, this program knows only %d: "+
			"use the newer program to go back", now.number, s.latest)
	case n > now.number:
		return nil, refuse("cannot go %d steps back: the database has schema version %s", n, now)
	}
	if err := errors.Join(s.cfg.checkLocks(now.number-n), s.checkConnections(now.number-n)); err != nil {
		return nil, err
	}
	return s.change(now, keep, func() error { return s.steps.Steps(-n) })
}

// keeper keeps a copy of a database before it is changed, and returns where; "" for none.
type keeper func(*schema, version) (path string, err error)

// change migrates a database with rows, in one transaction. Rows that refer to some that are not there are refused
// before: each migration checks that there are none after it.
func (s *schema) change(now version, keep keeper, migrate func() error) (c *change, err error) {
	c = &change{from: now, began: time.Now()}
	if err := s.cfg.brokenReferences(s.db); err != nil {
		return nil, refuse("%w, as after a deletion by hand. Nothing was changed: make a backup, correct or delete these "+
			"rows with sqlite3, then try again", err)
	}
	if c.before, err = s.count(); err != nil {
		return nil, err
	}
	c.size.before, c.checked = s.cfg.size(), time.Now()
	if err := s.at(checked); err != nil {
		return nil, err
	}
	if c.kept, err = keep(s, now); err != nil {
		return nil, err
	}
	c.copied = time.Now()
	if err := s.at(kept); err != nil {
		return nil, err
	}
	if err := s.driver.transact(migrate); err != nil {
		return nil, err
	}
	c.migrated = time.Now()
	c.size.after = s.cfg.size()
	if c.after, err = s.count(); err != nil {
		return nil, err
	}
	if c.to, err = s.cfg.readVersion(s.db); err == nil {
		c.floor, err = s.floor(c.to)
	}
	return c, err
}

// Points of a change, for tests that end the process there.
const (
	checked   dbcopy.Point = "checked"   // references and rows are checked and counted
	kept      dbcopy.Point = "kept"      // the copy has its name
	applied   dbcopy.Point = "applied"   // the migrations have run, their transaction is not committed
	committed dbcopy.Point = "committed" // it is
)

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
	floor, err := s.floor(now)
	if err != nil {
		return err
	}
	if floor > s.latest {
		return refuse("the database has schema version %d and takes no program older than %d, this one is %d: "+
			"use the newer program",
			now.number, floor, s.latest)
	}
	return nil
}

// floor is the oldest schema whose programs may use the database.
func (s *schema) floor(now version) (floor int, err error) {
	if now.number == 0 {
		return 0, nil
	}
	if err = s.db.QueryRow(`SELECT floor FROM schema_floor`).Scan(&floor); err != nil {
		err = fmt.Errorf("read schema_floor: %w", err)
	}
	return floor, err
}
