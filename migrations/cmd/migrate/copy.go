package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// spareSpace is what a copy leaves free on the disk, in bytes: a migration needs room, too.
const spareSpace = 256 << 20

// keepCopy copies the database beside it before its schema is changed, and removes the copy of the change before.
// Daemons may write meanwhile. Without room for a copy it says so and keeps none.
func (p program) keepCopy(s *schema, now version) error {
	if p.cfg.server != "" {
		p.note("the server's database is changed in place: its own backups have it as it was")
		return nil
	}
	path := p.cfg.copyPath(strconv.Itoa(now.number))
	needed, free, err := copySpace(p.cfg.dbPath())
	if err != nil {
		return err
	}
	if free < needed {
		p.note("no copy of the database is kept: that needs %d MiB, %d MiB are free", needed>>20, free>>20)
		return nil
	}
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	defer os.Remove(partial) // nothing, once it is renamed
	if err := s.copyTo(partial); err != nil {
		return fmt.Errorf("copy the database before the migration: %w", err)
	}
	folder := filepath.Dir(path)
	older, err := fs.Glob(os.DirFS(folder), filepath.Base(p.cfg.copyPath("*"))) // not filepath.Glob: the path may have a * in it
	if err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	for _, name := range older {
		if name = filepath.Join(folder, name); name != path && name != partial {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	p.note("the database as it was is kept in %s; the next migration replaces it", path)
	return nil
}

// copySpace is what a copy needs, and what the disk has.
func copySpace(database string) (needed, free int64, err error) {
	needed = spareSpace
	for _, name := range []string{database, database + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			needed += 2 * info.Size() // the copy, and what the migration writes
		}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(database), &disk); err != nil {
		return 0, 0, err
	}
	return needed, int64(disk.Bavail) * disk.Frsize, nil
}

// copyTo writes a copy that only its user can read.
func (s *schema) copyTo(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := s.db.Exec(`VACUUM INTO ?`, path); err != nil {
		return err
	}
	return file.Sync()
}

func (p program) note(format string, args ...any) {
	if p.notes != nil {
		fmt.Fprintf(p.notes, "migrate: "+format+"\n", args...)
	}
}
