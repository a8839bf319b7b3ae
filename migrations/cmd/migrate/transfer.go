package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"arizuko/migrations/dbcopy"
	envconfig "arizuko/pkg/config"
	"arizuko/pkg/lockfile"
)

// Targets of copy that are no URL.
const (
	toServer = "server" // that of ARIZUKO_DB
	toFile   = "file"   // the one in the data folder
)

// copy copies the rows of the instance to a server, or back to the file, and verifies them. Killed at any moment, it is
// completed by another call.
func (p program) copy(to string) (err error) {
	if to, err = p.target(to); err != nil {
		return err
	}
	if err := p.cfg.checkRestoring(); err != nil {
		return err
	}
	if err := makeFolders(p.cfg.data); err != nil {
		return refusal{err}
	}
	own, err := p.lock()
	if err != nil {
		return err
	}
	var daemons lockfile.Folder
	defer daemons.Close()
	daemons.Add(filepath.Base(p.cfg.lockPath()), own)
	lockDaemons := func() error {
		err := daemons.Take(filepath.Dir(p.cfg.lockPath()))
		if errors.Is(err, lockfile.ErrHeld) {
			err = fmt.Errorf("%w: %w: stop all daemons and commands first", dbcopy.ErrRunning, err)
		}
		return err
	}
	if err := lockDaemons(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	reporter := reporter{out: p.notes, last: began}
	options := dbcopy.Options{Progress: reporter.report, Confirm: lockDaemons, At: p.at}
	file, server := p.cfg.dbPath(), dbcopy.Name(p.cfg.server)
	var result dbcopy.Result
	if to == toFile {
		result, err = dbcopy.ToFile(ctx, p.cfg.server, file, options)
	} else {
		result, err = dbcopy.ToServer(ctx, file, p.cfg.server, options)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: run it again (%w)", err)
	case err != nil:
		return copyError(err)
	case to == toFile:
		return p.reportCopy(result, server, file, "Unset ARIZUKO_DB for all daemons and commands, then start them.",
			time.Since(began))
	}
	return p.reportCopy(result, file, server, "Set ARIZUKO_DB for all daemons and commands, then start them.",
		time.Since(began))
}

// target reads the argument of --to: it sets the server, and returns toServer or toFile.
func (p *program) target(to string) (string, error) {
	switch {
	case dbcopy.IsServer(to):
		if new(envconfig.Server).UnmarshalText([]byte(to)) != nil {
			return "", refuse("--to: want postgres://user@host/database")
		}
		if p.cfg.server != "" && p.cfg.server != to {
			return "", refuse("--to and ARIZUKO_DB name two servers: rows are copied between a server and the file " +
				"in the data folder; unset ARIZUKO_DB")
		}
		p.cfg.server = to
		return toServer, nil
	case to != toServer && to != toFile:
		return "", refuse("copy --to: want %s, %s or postgres://user@host/database", toServer, toFile)
	case p.cfg.server == "":
		return "", refuse("copy --to %s: ARIZUKO_DB, or ARIZUKO_DB_FILE, has to name the server", to)
	}
	return to, nil
}

func copyError(err error) error {
	switch {
	case errors.Is(err, dbcopy.ErrRefused):
		return refusal{err}
	case errors.Is(err, dbcopy.ErrRunning):
		return err
	}
	return fmt.Errorf("%w; run it again, or `migrate reopen` to go on with the source", err)
}

func (p program) reportCopy(r dbcopy.Result, from, to, next string, took time.Duration) error {
	for _, t := range r.Tables {
		fmt.Fprintf(p.out, "%-20s %9d rows  %s\n", t.Name, t.Rows, t.Sum)
	}
	if r.Cleaned > 0 {
		p.note("%d texts had NUL characters or bytes that are no UTF-8, which a server does not take: "+
			"they were left out or became �", r.Cleaned)
	}
	if r.Aside != "" {
		p.note("the file that was there before is %s now: remove it when you do not need it any more", r.Aside)
	}
	done := "copied"
	if r.Already {
		done = "an earlier call had copied"
	}
	_, err := fmt.Fprintf(p.out,
		"%s %d rows of %d tables in %s from %s to %s: counts and checksums are the same\n%s Daemons do not start on "+
			"%s any more.\n",
		done, r.Rows(), len(r.Tables), took.Round(100*time.Millisecond), from, to, next, from)
	return err
}

// reopen removes the mark of a copy.
func (p program) reopen() error {
	lock, err := p.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	database := p.cfg.server
	if database == "" {
		database = p.cfg.dbPath()
	}
	moved, err := dbcopy.Reopen(context.Background(), database)
	switch {
	case errors.Is(err, dbcopy.ErrRefused):
		return refusal{err}
	case err != nil:
		return err
	case moved == "":
		_, err = fmt.Fprintln(p.out, "it is not marked as moved, nothing to do")
	default:
		_, err = fmt.Fprintf(p.out,
			"daemons may use it again; it has nothing of what was stored since it was copied to %s: "+
				"let none run there\n", moved)
	}
	return err
}

// reportPause is between two lines about the progress.
const reportPause = 2 * time.Second

// reporter prints how far a copy is.
type reporter struct {
	out   io.Writer
	what  string    // the table and the step
	began time.Time // when that began
	last  time.Time
}

func (r *reporter) report(p dbcopy.Progress) error {
	now := time.Now()
	if what := p.Table + string(p.Step); what != r.what {
		r.what, r.began = what, now
	}
	if r.out == nil || now.Sub(r.last) < reportPause {
		return nil
	}
	r.last = now
	if p.Step == dbcopy.Indexing {
		fmt.Fprintf(r.out, "migrate: %s\n", p)
		return nil
	}
	fmt.Fprintf(r.out, "migrate: %s, %.0f rows/s\n", p, float64(p.Rows)/max(now.Sub(r.began).Seconds(), 0.001))
	return nil
}
