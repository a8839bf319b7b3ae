package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"arizuko/pkg/disk"
)

// spareSpace is how much a copy leaves free on the disk, in bytes: a migration needs room, too.
const spareSpace = 256 << 20

// keepCopy copies the database beside it before its schema is changed, and removes the copy of the change before.
// Daemons may write meanwhile. Without room for a copy it refuses.
func (p program) keepCopy(s *schema, now version) (path string, err error) {
	switch {
	case p.cfg.server != "":
		p.note("the server's database is changed in place: its own backups have it as it was")
		return "", nil
	case p.noCopy:
		p.note("no copy of the database is kept, as --no-copy says")
		return "", nil
	}
	path = p.cfg.copyPath(strconv.Itoa(now.number))
	needed, free, err := p.cfg.copySpace()
	if err != nil {
		return "", err
	}
	if free < needed {
		return "", refuse("a copy of the database needs %d MiB, and %d MiB are free: make room; "+
			"or back up to another disk, and add --no-copy. Nothing was changed", needed>>20, free>>20)
	}
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	defer os.Remove(partial) // nothing, once it is renamed
	if err := s.copyTo(context.Background(), partial); err != nil {
		return "", fmt.Errorf("copy the database before the migration: %w; nothing was changed", err)
	}
	folder := filepath.Dir(path)
	// not filepath.Glob: the path may have a * in it
	older, err := fs.Glob(os.DirFS(folder), filepath.Base(p.cfg.copyPath("*")))
	if err != nil {
		return "", err
	}
	if err := os.Rename(partial, path); err != nil {
		return "", err
	}
	for _, name := range older {
		if name = filepath.Join(folder, name); name != path && name != partial {
			if err := os.Remove(name); err != nil {
				return "", err
			}
		}
	}
	return path, nil
}

// copySpace is how much space a copy needs, and how much the disk has.
func (c config) copySpace() (needed, free int64, err error) {
	space, err := disk.Of(c.data)
	return spareSpace + 2*c.size(), space.Free, err // the copy, and the migration
}

// size is the size of the database and its log, in bytes; 0 on a server.
func (c config) size() (bytes int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(c.dbPath() + suffix); err == nil && c.server == "" {
			bytes += info.Size()
		}
	}
	return bytes
}

// copyTo writes a copy that only its user can read.
func (s *schema) copyTo(ctx context.Context, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return err
	}
	return file.Sync()
}

// printReceipt prints the lines of a receipt. Commands, which are indented, have no prefix, so that they can be copied.
func (p program) printReceipt(lines []string) {
	for _, line := range lines {
		if p.notes != nil && strings.HasPrefix(line, " ") {
			fmt.Fprintln(p.notes, line)
		} else {
			p.note("%s", line)
		}
	}
}

func (p program) note(format string, args ...any) {
	if p.notes != nil {
		fmt.Fprintf(p.notes, "migrate: "+format+"\n", args...)
	}
}
