package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"arizuko/migrations"
	"arizuko/pkg/config"
	"arizuko/pkg/disk"
	"arizuko/pkg/store"
)

// maxWAL is far above what the busiest instance writes between two checkpoints, in bytes: the next writer cuts a larger
// log back, unless a reader keeps it. The alert has 512 MiB.
const maxWAL = 128 << 20

const spaceFix = "remove old files in logs/ and media/ (RETENTION_DAYS does it every day), or give the data folder " +
	"a larger disk"

// fullDisk checks whether the data folder's file system has space to go on.
func fullDisk(e *examination) (space disk.Space, err error) {
	if space, err = e.Disk(e.Base.Data); err == nil && space.IsFull() {
		e.Problem("disk-full", fmt.Sprintf("the disk of %s is full: %s free. Soon nothing new can be stored",
			e.Base.Data, disk.Bytes(space.Free)), spaceFix)
	}
	return space, err
}

// checkDisk checks the space of the data folder's file system.
func checkDisk(e *examination) {
	space, err := fullDisk(e)
	if err != nil {
		return // the folder is missing, which is reported
	}
	e.looked(fmt.Sprintf("disk: %s free of %s", disk.Bytes(space.Free), disk.Bytes(space.Size)))
	if space.IsLow() && !space.IsFull() {
		e.Warn("disk-low", fmt.Sprintf("the disk of %s has only %s free, %.0f %%", e.Base.Data, disk.Bytes(space.Free),
			100*space.Share()), spaceFix)
	}
	if space.FilesLow() {
		e.Problem("disk-inodes", fmt.Sprintf("the file system of %s has %d of %d inodes left: soon no file can be made",
			e.Base.Data, space.FreeFiles, space.Files), spaceFix)
	}
}

// checkWAL checks whether checkpoints keep up.
func checkWAL(e *examination) {
	if e.Base.DB != "" {
		return // a server has one of its own
	}
	size := int64(0)
	if log, err := os.Stat(e.Base.DBPath() + "-wal"); err == nil {
		size = log.Size()
	}
	if info, err := os.Stat(e.Base.DBPath()); err == nil {
		e.looked(fmt.Sprintf("database: %s, write-ahead log %s", disk.Bytes(info.Size()), disk.Bytes(size)))
	}
	if size > maxWAL {
		e.Problem("wal-grows", fmt.Sprintf("checkpoints do not advance: the write-ahead log has %s", disk.Bytes(size)),
			"start gated, which makes them; if it runs, end the program that has read the database for "+
				"long: `fuser -v "+e.Base.DBPath()+"`")
	}
}

// newLog returns a function that removes the empty write-ahead log which reading has left, if there was none
// before: no daemon runs then. SQLite removes it itself when the last connection that may write is closed.
func newLog(ctx context.Context, base config.Base) (remove func()) {
	wal := base.DBPath() + "-wal"
	if base.DB != "" {
		return func() {}
	}
	if _, err := os.Lstat(wal); err == nil {
		return func() {}
	}
	return func() {
		info, err := os.Lstat(wal)
		if err != nil || info.Size() > 0 {
			return
		}
		if c, err := store.OpenCheckpointer(base.DBPath()); err == nil {
			_, _ = c.Run(ctx) // without it the connection does not look at the log
			_ = c.Close()
		}
	}
}

// checkDatabase checks the schema and opens the database, if it can be read.
func checkDatabase(ctx context.Context, e *examination) {
	name, built := e.Base.Database(), migrations.Latest()
	path := store.Name(name)
	s, err := store.ReadSchema(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Problem("database-missing", "there is no database at "+path,
			"set ARIZUKO_DATA to the data folder; for a new instance run `migrate up`, else restore a backup")
	case err != nil:
		e.unreadable(err)
	case s.Version == 0:
		e.Problem("schema-none", path+" is not migrated", "run `migrate up`")
	case s.Dirty:
		e.Problem("schema-dirty", fmt.Sprintf("migration %d is running or has failed", s.Version),
			"wait for it; if none runs, `migrate up` says how to repair it")
	case s.Version < built:
		text, fix := "a migration is pending", "back up, then run `migrate up`"
		if fell := e.answers.saying(store.Changed); fell != nil {
			text = "the schema was taken back while " + strings.Join(fell, ", ") + " ran, which cannot go on"
			fix = store.SchemaFix
		}
		text = fmt.Sprintf("%s: the schema is at %d and this program needs %d", text, s.Version, built)
		e.Problem("schema-old", text, fix)
	case s.Floor > built:
		e.Refuse("schema-new",
			fmt.Sprintf("this program was built for schema %d, the database is at %d and needs programs built "+
				"for %d or later",
				built, s.Version, s.Floor), "install the version that migrated the database, or roll back")
	case s.Moved != "":
		e.Refuse("database-moved", path+" was copied to "+s.Moved+": daemons do not start on it",
			"set or unset ARIZUKO_DB so that it names that one; `migrate reopen` makes this one usable again, "+
				"without what was stored since")
	default:
		e.looked(cmp.Or(s.Newer(built), fmt.Sprintf("schema: %d", s.Version)))
		checkServer(ctx, e, name)
		openDatabase(ctx, e, name, built)
		return
	}
	e.schema = true
}

func openDatabase(ctx context.Context, e *examination, path string, built int) {
	st, err := store.OpenReadOnly(ctx, path, built)
	if err != nil {
		e.unreadable(err)
		return
	}
	e.st = st
	if !e.Deep {
		return
	}
	if store.IsServer(path) {
		e.looked("integrity check: none, a server's database is checked by pg_amcheck")
		return
	}
	lines, err := store.Damage(ctx, path)
	if err != nil {
		e.unreadable(err)
		return
	}
	for _, line := range lines {
		e.Problem("database-damaged", "the database is damaged: "+line, damagedFix)
	}
	if len(lines) == 0 {
		e.looked("integrity check: ok")
	}
}

const damagedFix = "stop all daemons, keep a copy of arizuko.db*, and restore a backup"

// unreadable reports an error of the database, once.
func (e *examination) unreadable(err error) {
	e.schema, err = true, store.Explain(err)
	id, fix := "database-unreadable",
		"run this as the user that runs the daemons; `dashd doctor --deep` checks the file"
	if errors.Is(err, store.ErrDamaged) {
		id, fix = "database-damaged", damagedFix
	} else if e.Base.DB != "" {
		fix = "check that the server runs, that this machine reaches it, and what ARIZUKO_DB says"
	} else if e.Has("disk-full") {
		fix = "first make room on the disk: reading makes a small file there if no daemon runs"
	}
	if !e.Has(id) {
		e.Problem(id, "the database cannot be read: "+err.Error(), fix)
	}
}
