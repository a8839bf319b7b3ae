package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"arizuko/pkg/disk"
	"arizuko/pkg/lockfile"
)

// rehearsal is one call of migrate rehearse.
type rehearsal struct {
	program
	days, rows int
	keep       bool

	folder string // of the copy, which is a data folder of its own
	took   time.Duration
}

const rehearseUsage = "usage: migrate rehearse [--days N] [--rows N] [--keep]"

const serverRehearsal = "rehearse copies a database file, and this one is on a server: copy it there, " +
	"as by `createdb rehearsal` and `pg_dump \"$ARIZUKO_DB\" | psql -d rehearsal`, while daemons run, " +
	"and run `migrate up` of this program with ARIZUKO_DB naming the copy: its receipt says what changes. " +
	"After it, with the same ARIZUKO_DB, `gated redecide` of this version prints what would be decided otherwise. " +
	"Then `dropdb rehearsal`"

// rehearse migrates a copy of the instance, compares the decisions of the new programs with the stored ones, and prints
// the effects of an upgrade. Daemons may run: nothing of the instance is changed.
func (p program) rehearse(args []string) (err error) {
	r := rehearsal{program: p}
	flags := flag.NewFlagSet("rehearse", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&r.days, "days", 7, "how many days of messages are decided again")
	flags.IntVar(&r.rows, "rows", 10_000, "how many messages at most")
	flags.BoolVar(&r.keep, "keep", false, "keep the copy until the next rehearsal")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(p.out, rehearseUsage)
		flags.SetOutput(p.out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return refuse("%w (%s)", err, rehearseUsage)
	case flags.NArg() > 0 || r.days < 1 || r.rows < 1:
		return refuse(rehearseUsage)
	case p.cfg.server != "":
		return refuse(serverRehearsal)
	}
	if err := p.cfg.checkThere(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	remove, err := r.makeFolder()
	if err != nil {
		return err
	}
	defer remove()
	return r.run(ctx)
}

func (r *rehearsal) run(ctx context.Context) error {
	began := time.Now()
	if err := r.copy(ctx); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	r.took = time.Since(began)
	err := r.migrate(ctx)
	if err == nil {
		err = r.redecide(ctx)
	}
	if err == nil && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if r.keep {
		r.print("the copy is kept in %s until the next rehearsal", r.folder)
	}
	r.print("the instance was not changed; rehearsed in %s", time.Since(began).Round(10*time.Millisecond))
	return err
}

func (r *rehearsal) print(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// makeFolder makes the folder of the copy on the disk of the database, and removes those that earlier calls have left.
// A call holds its folder locked as long as it runs.
func (r *rehearsal) makeFolder() (remove func(), err error) {
	const prefix, lockName = "rehearsal-", "rehearsal.lock"
	run := filepath.Join(r.cfg.data, "run")
	if err := os.MkdirAll(run, 0o700); err != nil { // a copy of a data folder may lack it
		return nil, err
	}
	left, err := fs.Glob(os.DirFS(run), prefix+"*")
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		path := filepath.Join(run, name)
		if held, err := lockfile.TryLock(filepath.Join(path, lockName)); err == nil {
			err = os.RemoveAll(path)
			held.Close()
			if err != nil {
				return nil, err
			}
		}
	}
	if r.folder, err = os.MkdirTemp(run, prefix+"*"); err != nil { // mode 0700
		return nil, err
	}
	held, err := lockfile.TryLock(filepath.Join(r.folder, lockName))
	if err != nil {
		return nil, err
	}
	return func() {
		if !r.keep {
			_ = os.RemoveAll(r.folder) // the next call removes the rest
		}
		held.Close()
	}, nil
}

// copyOf is the configuration of the copy.
func (r *rehearsal) copyOf() config { return config{data: r.folder, unsafeFS: r.cfg.unsafeFS} }

// copy copies the database as it is at one moment. It opens the file for reading alone.
func (r *rehearsal) copy(ctx context.Context) error {
	needed, free, err := r.cfg.copySpace()
	if err != nil {
		return err
	}
	if free < needed {
		return refuse("that needs %d MiB on the disk of %s, and %d MiB are free", needed>>20, r.cfg.data, free>>20)
	}
	db, err := openReading(r.cfg.dbPath())
	if err != nil {
		return err
	}
	defer db.Close()
	s := schema{db: db}
	return s.copyTo(ctx, r.copyOf().dbPath())
}

// migrate migrates the copy, and prints the receipt of that.
func (r *rehearsal) migrate(context.Context) error {
	return r.withSchema(r.copyOf(), func(s *schema) error {
		done, changed, err := s.up(func(*schema, version) (string, error) { return "", nil })
		if err != nil {
			return fmt.Errorf("`migrate up` would fail: %w", err)
		}
		if done == nil {
			now, err := r.cfg.readVersion(s.db)
			if !changed && err == nil {
				r.print("schema %s: there is nothing to migrate", now)
			}
			return err
		}
		done.copied = done.copied.Add(r.took) // as up makes it
		done.migrated = done.migrated.Add(r.took)
		for _, line := range done.lines() {
			r.print("%s", line)
		}
		return r.printSpace(done)
	})
}

// printSpace says how much space `migrate up` needs for the copy that it keeps and for the migration.
func (r *rehearsal) printSpace(done *change) error {
	space, err := disk.Of(r.cfg.data)
	if err != nil {
		return err
	}
	needed, _, err := r.cfg.copySpace()
	if err != nil {
		return err
	}
	grown := max(done.size.after-done.size.before, 0)
	r.print("disk: `migrate up` writes about %s: the copy that it keeps %s, the migration %s. "+
		"It does not begin with less than %s free; %s are",
		disk.Bytes(done.size.before+grown), disk.Bytes(done.size.before), disk.Bytes(grown), disk.Bytes(needed),
		disk.Bytes(space.Free+done.size.after))
	return nil
}

// redecide lets the programs beside this one decide the stored messages of the copy again, and print the differences.
func (r *rehearsal) redecide(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	gated := filepath.Join(filepath.Dir(self), "gated")
	switch _, err := os.Stat(gated); {
	case errors.Is(err, fs.ErrNotExist):
		r.print("decisions: not compared, there is no gated beside %s", self)
		return nil
	case err != nil:
		return fmt.Errorf("decisions are not compared: %w", err)
	}
	cmd := osexec.CommandContext(ctx, gated, "redecide", "--days", strconv.Itoa(r.days), "--rows", strconv.Itoa(r.rows))
	cmd.Env = environOf(absolute(r.folder))
	var problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = r.out, &problems
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("decisions are not compared: %w: %s", err, printable(strings.TrimSpace(problems.String())))
	}
	return nil
}
