package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
)

// Process has the parts of this process that backups need.
type Process struct {
	Version string // of the program
	Schema  int    // the newest that it knows
	In      io.Reader
	Log     io.Writer // progress and notes: standard error
	Now     func() time.Time
}

// Program has the subcommands.
type Program struct {
	Process
	Place func() (Place, error)
}

// Place is where an instance keeps its data.
type Place struct {
	Data   string // the data folder
	Server string // the URL of the server with its database, "" for a file in Data
}

// Commands returns the subcommands backup and restore.
func (p Program) Commands() map[string]cli.Func {
	return map[string]cli.Func{"backup": p.backup, "restore": p.restore}
}

func (p Program) backup(ctx context.Context, args []string, out io.Writer) error {
	line := cli.Daemon{Name: "dashd"}.Line("backup [--verify] FILE", out)
	verify := line.Bool("verify", false, "check a backup instead of making one")
	files, err := line.Arguments(args, "FILE")
	if err != nil {
		return err
	}
	if *verify {
		s, err := Verify(ctx, files[0], p.In, p.Log)
		if problem := s.tooNew(p.Schema); problem != "" { // its parts may be whole all the same
			fmt.Fprintln(p.Log, "note:", cli.PrintableLine(problem))
		}
		if err != nil {
			return orInterrupted(ctx, err)
		}
		_, err = fmt.Fprintf(out, "%s is whole. %s, made by %s from %s\n", cli.PrintableLine(files[0]), s, s.Version,
			cli.PrintableLine(s.Instance))
		return err
	}
	return p.create(ctx, files[0], out)
}

func (p Program) create(ctx context.Context, target string, out io.Writer) error {
	place, err := p.Place()
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := Creation{Process: p.Process, Place: place, Target: target, Out: out}.Run(ctx)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	if target == Stdout {
		out = p.Log
	}
	fmt.Fprintf(out, "%s\n%s in %s, %s. It holds all messages and the secret in the clear: keep it where only "+
		"operators can read.\n",
		s, disk.Bytes(s.Size), cli.PrintableLine(target), time.Since(began).Round(100*time.Millisecond))
	n := s.Notes
	if n.Changed+n.Vanished+n.Skipped > 0 {
		fmt.Fprintf(p.Log, "files that changed while they were read: %d, that were removed meanwhile: "+
			"%d, skipped: %d\n",
			n.Changed, n.Vanished, n.Skipped)
	}
	if n.Unreadable > 0 {
		return fmt.Errorf("the backup is written, but without %d files that could not be read: make it as a user who "+
			"may read them", n.Unreadable)
	}
	return nil
}

func (p Program) restore(ctx context.Context, args []string, out io.Writer) error {
	line := cli.Daemon{Name: "dashd"}.Line("restore [--force] [--cancel-open] FILE", out)
	force := line.Bool("force", false, "replace the instance in the data folder, which is moved aside in it")
	cancel := line.Bool("cancel-open", false,
		"cancel what was under way when the backup was made: nothing is answered or sent twice")
	files, err := line.Arguments(args, "FILE")
	if err != nil {
		return err
	}
	place, err := p.Place()
	if err != nil {
		return err
	}
	if place.Server != "" {
		return refuse("a backup is restored to a file: unset ARIZUKO_DB and repeat this, " +
			"then set it again and run `migrate copy --to server`, which moves the restored instance to an empty " +
			"database of the server")
	}
	done, err := Restoration{Process: p.Process, Data: place.Data, Source: files[0], Force: *force,
		CancelOpen: *cancel}.Run(ctx)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	if done.Resumed {
		fmt.Fprintln(out, "completed the restore that was interrupted, without reading FILE; to restore another "+
			"backup, use --force")
	}
	if done.Aside != "" {
		fmt.Fprintf(out, "what was in the data folder is in %s: remove it when you do not need it any more\n",
			done.Aside)
	}
	_, err = fmt.Fprintf(out, "restored %s, made by %s\nNow run `migrate up`, then start the daemons.\n", done,
		done.Version)
	return err
}

// orInterrupted returns an error, or that the command was interrupted: then it has failed, whatever it returns.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted: nothing was changed")
	}
	return err
}

// refuse returns an error that a second try does not fix.
func refuse(format string, args ...any) error {
	return &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf(format, args...)}
}
