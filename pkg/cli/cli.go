// Package cli has the parts that subcommands calling a running daemon share: the call, the command line,
// and output without terminal control characters.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"unicode"

	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// Func is a subcommand, called with its arguments and where to print. It returns flag.ErrHelp
// after printing its help.
type Func = func(ctx context.Context, args []string, out io.Writer) error

// By is who asks for a change, in the audit, if it is the command line.
const By = "cli"

// Daemon is the daemon that is called.
type Daemon struct {
	Name    string
	Connect func() (*httpx.Client, error) // returns a client for the running daemon
}

// Call calls the daemon, see httpx.Client. If it is not running, the error says how to start it; it is
// apierr.Unavailable then.
func (d Daemon) Call(ctx context.Context, method, path string, in, out any) error {
	client, err := d.Connect()
	if err != nil {
		return err
	}
	err = client.Do(httpx.WithBy(ctx, By), method, path, in, out)
	var network *net.OpError
	if apierr.KindOf(err) == apierr.Unavailable {
		if problem := daemon.SchemaProblem(ctx); problem != nil {
			return apierr.New(apierr.Unavailable, "%s does not answer at %s, since it cannot use the database: %w",
				d.Name, client, problem)
		}
	}
	if apierr.KindOf(err) == apierr.Unavailable && errors.As(err, &network) {
		return apierr.New(apierr.Unavailable, "%s is not running at %s: start it with `%s`, or set %s_URL (%w)",
			d.Name, client, d.Name, strings.ToUpper(d.Name), network)
	}
	return err
}

// Line is the command line of a subcommand. Define its flags before Read.
type Line struct {
	*flag.FlagSet
	out io.Writer
}

// Line returns a command line. usage is the text after the daemon's name; help is printed to out.
func (d Daemon) Line(usage string, out io.Writer) *Line {
	fs := flag.NewFlagSet(d.Name+" "+usage, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are returned; printing them too would show them twice
	return &Line{fs, out}
}

// AnyNumber is a limit for Read: as many arguments as there are.
const AnyNumber = math.MaxInt

// Read reads flags before, between and after the other arguments and returns those, at most limit
// of them. The error is a usage error, or flag.ErrHelp if help was printed.
func (l *Line) Read(args []string, limit int) (rest []string, err error) {
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
		case len(rest) == limit:
			return nil, l.UsageError("unexpected argument %q", l.Arg(0))
		}
		rest, args = append(rest, l.Arg(0)), l.Args()[1:]
	}
}

// Arguments is Read for arguments with names, as in the usage: "[FOLDER]" may be left out, and the last one stands for
// any number of them if it ends with "…".
func (l *Line) Arguments(args []string, names ...string) ([]string, error) {
	limit := len(names)
	if strings.Contains(names[limit-1], "…") {
		limit = AnyNumber
	}
	rest, err := l.Read(args, limit)
	if err == nil && len(rest) < len(names) && !strings.HasPrefix(names[len(rest)], "[") {
		return nil, l.UsageError("%s is missing", strings.TrimSuffix(names[len(rest)], "…"))
	}
	return rest, err
}

// ID reads an argument that is the id of a thing, such as a message.
func (l *Line) ID(text, thing string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, l.UsageError("%q is not the id of a %s", text, thing)
	}
	return id, nil
}

// UsageError is an error in the arguments, with the usage appended.
func (l *Line) UsageError(format string, args ...any) error {
	return UsageError("%w (usage: %s)", fmt.Errorf(format, args...), l.Name())
}

// UsageError is an error in the command line: a *daemon.ExitError with daemon.ExitRefused.
func UsageError(format string, args ...any) error {
	return &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf(format, args...)}
}

// Printable replaces control characters, which text from the database may hold, so that they do
// not reach the terminal. Line ends stay.
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
