// Package cli is what the subcommands share that ask a running daemon: the call, the command
// line, and output that does not steer the terminal.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"unicode"

	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// Func is a subcommand: its arguments, and where it prints. When it has printed its help it
// returns flag.ErrHelp.
type Func = func(ctx context.Context, args []string, out io.Writer) error

// Daemon is the one that is asked.
type Daemon struct {
	Name    string
	Connect func() (*httpx.Client, error) // makes the client of the running one
}

// Call asks the daemon, see httpx.Client. That nobody answers is explained in terms of what to do.
func (d Daemon) Call(ctx context.Context, method, path string, in, out any) error {
	client, err := d.Connect()
	if err != nil {
		return err
	}
	err = client.Do(ctx, method, path, in, out)
	var network *net.OpError
	if apierr.KindOf(err) == apierr.Unavailable && errors.As(err, &network) {
		return fmt.Errorf("%s is not running at %s: start it with `%s`, or set %s_URL (%w)",
			d.Name, client.Base, d.Name, strings.ToUpper(d.Name), network)
	}
	return err
}

// Line is the command line of a subcommand. Its flags are to be defined before it is read.
type Line struct {
	*flag.FlagSet
	out io.Writer
}

// Line makes a command line. usage is what stands behind the daemon's name; help is printed to out.
func (d Daemon) Line(usage string, out io.Writer) *Line {
	fs := flag.NewFlagSet(d.Name+" "+usage, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are returned; printing them too would show them twice
	return &Line{fs, out}
}

// AnyNumber is for Read: as many arguments as there are.
const AnyNumber = math.MaxInt

// Read reads flags before, between and behind the other arguments, of which there are at most so
// many, and returns these. The error is a mistake, or flag.ErrHelp when help was printed.
func (l *Line) Read(args []string, most int) (rest []string, err error) {
	for {
		err := l.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprintf(l.out, "usage: %s\n", l.Name())
			l.SetOutput(l.out)
			l.PrintDefaults()
			return nil, err
		case err != nil:
			return nil, l.UsageError("%w", err)
		case l.NArg() == 0:
			return rest, nil
		case len(rest) == most:
			return nil, l.UsageError("what is %q?", l.Arg(0))
		}
		rest, args = append(rest, l.Arg(0)), l.Args()[1:]
	}
}

// UsageError is an error of who wrote the line, with the usage behind it.
func (l *Line) UsageError(format string, args ...any) error {
	return UsageError("%w (usage: %s)", fmt.Errorf(format, args...), l.Name())
}

// UsageError is an error of who wrote the command line: a *daemon.ExitError with daemon.ExitRefused.
func UsageError(format string, args ...any) error {
	return &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf(format, args...)}
}

// Printable keeps what others wrote into the database from steering the terminal. Line ends stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// PrintableLine is Printable on one line.
func PrintableLine(text string) string { return strings.ReplaceAll(Printable(text), "\n", "?") }
