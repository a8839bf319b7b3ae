// Migrate creates and changes the database's schema. It is the only program that does; the
// daemons wait for it.
//
//	migrate rehearse [--days N] [--rows N] [--keep]
//	                    migrates a copy, and says what an upgrade would change; the instance is left alone
//	migrate up          to the newest version this program knows
//	migrate down [N]    N steps back, 1 if not given
//	migrate copy --to server|file|URL
//	                    copies all rows of the instance to the server of $ARIZUKO_DB or a URL, or from
//	                    there to the file
//	migrate reopen      lets daemons use a database again whose rows were copied to another one
//	migrate version     prints the schema's version, followed by "dirty" if it is, or "none"
//	migrate --version   prints the version of this program
//
// Before up and down change rows, they keep a copy of the database file, unless --no-copy follows.
//
// The data folder is $ARIZUKO_DATA, ./data by default. The database is a file in it, or on the
// Postgres server whose URL is $ARIZUKO_DB. up also makes its subfolders and the
// secret that the daemons share. A file system that cannot carry the database is refused, unless
// $ARIZUKO_UNSAFE_FS is true. Exit code: 0 done, 1 failure, 75 another migrate or a daemon is running,
// 78 wrong usage or configuration, or a schema this program must not touch.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/migrations"
	"arizuko/migrations/dbcopy"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/lockfile"
)

const (
	exitFailure = 1
	exitLocked  = 75 // EX_TEMPFAIL
	exitConfig  = 78 // EX_CONFIG
)

const usage = "usage: migrate rehearse | up | down [N] | copy --to server|file|URL | reopen | version | " +
	"--help | --version"

// lockWait is how long a second migrate waits for the first one.
const lockWait = 10 * time.Second

func main() { os.Exit(run(os.Args[1:], nil)) }

// run is one call of the program. at is called at the points of a copy; tests end the process there.
func run(args []string, at func(dbcopy.Point) error) (code int) {
	cfg, err := environment()
	if err == nil {
		err = dataowner.Become(cfg.data)
	}
	if err == nil {
		err = program{cfg: cfg, files: cfg.files(), lockWait: lockWait, out: os.Stdout, notes: os.Stderr,
			at: at}.run(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "migrate:", err)
	}
	return exitCode(err)
}

// refusal is an error that a second run does not fix.
type refusal struct{ error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

func exitCode(err error) int {
	var no refusal
	switch {
	case err == nil:
		return 0
	case errors.Is(err, lockfile.ErrHeld), errors.Is(err, dbcopy.ErrRunning):
		return exitLocked
	case errors.As(err, &no):
		return exitConfig
	default:
		return exitFailure
	}
}

// program is one call of migrate.
type program struct {
	cfg      config
	files    fs.FS
	lockWait time.Duration
	out      io.Writer
	notes    io.Writer // receipts and progress
	at       func(dbcopy.Point) error
	noCopy   bool // --no-copy
}

func (p program) run(args []string) error { return p.cfg.explain(p.command(args)) }

func (p program) command(args []string) error {
	if at := slices.Index(args, "--no-copy"); at > 0 && slices.Contains([]string{"up", "down"}, args[0]) {
		p.noCopy, args = true, slices.Delete(slices.Clone(args), at, at+1)
	}
	switch {
	case len(args) == 1 && args[0] == "up":
		return p.up()
	case len(args) == 1 && args[0] == "down":
		return p.down(1)
	case len(args) == 2 && args[0] == "down":
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return refuse("down %s: want a number of steps from 1", args[1])
		}
		return p.down(n)
	case len(args) > 0 && args[0] == "rehearse":
		return p.rehearse(args[1:])
	case len(args) == 3 && args[0] == "copy" && args[1] == "--to":
		return p.copy(args[2])
	case len(args) == 2 && args[0] == "copy" && strings.HasPrefix(args[1], "--to="):
		return p.copy(strings.TrimPrefix(args[1], "--to="))
	case len(args) == 1 && args[0] == "reopen":
		return p.reopen()
	case len(args) == 1 && args[0] == "version":
		return p.version()
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-version"):
		fmt.Fprintf(p.out, "migrate %s, schema %d\n", buildinfo.Version(), migrations.Latest())
		return nil
	case slices.ContainsFunc(args, func(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }):
		fmt.Fprintln(p.out, usage)
		return nil
	default:
		return refuse(usage)
	}
}

func (p program) up() error {
	if err := errors.Join(p.cfg.checkRestoring(), p.cfg.checkFileSystem(), p.cfg.checkFile()); err != nil {
		return err
	}
	return p.locked(func() error {
		if !p.cfg.hasSecret {
			if err := makeSecret(p.cfg.secretPath()); err != nil {
				return err
			}
		}
		return p.withSchema(p.cfg, func(s *schema) error {
			done, changed, err := s.up(p.keepCopy)
			if err != nil {
				return err
			}
			return p.report(s, done, changed)
		})
	})
}

func (p program) down(n int) error {
	return p.change(func(s *schema) error {
		done, err := s.down(n, p.keepCopy)
		if err != nil {
			return err
		}
		return p.report(s, done, true)
	})
}

// change changes a database that exists.
func (p program) change(do func(*schema) error) error {
	if err := p.cfg.checkThere(); err != nil {
		return err
	}
	return p.locked(func() error { return p.withSchema(p.cfg, do) })
}

// locked runs do while no other migrate runs. A copy of a data folder may lack some of the folders.
func (p program) locked(do func() error) error {
	if err := makeFolders(p.cfg.data); err != nil {
		return refusal{p.cfg.explain(err)}
	}
	lock, err := p.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

func (p program) version() error {
	v := version{}
	if err := p.cfg.checkFile(); err != nil {
		return err
	}
	if !p.cfg.missing() {
		db, err := p.cfg.open()
		if err != nil {
			return err
		}
		defer db.Close()
		if v, err = p.cfg.readVersion(db); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(p.out, v)
	return err
}

func (p program) report(s *schema, done *change, changed bool) error {
	v, err := p.cfg.readVersion(s.db)
	if err != nil {
		return err
	}
	if done != nil {
		p.printReceipt(append(done.lines(), done.wayBack(p.cfg)...))
	}
	if v.number > s.latest {
		p.note("the schema is at %d, newer than this program, which knows %d: daemons of its version work as before",
			v.number, s.latest)
	}
	note := ""
	if !changed {
		note = ", nothing to do"
	}
	_, err = fmt.Fprintf(p.out, "schema version %s%s\n", v, note)
	return err
}
