// Package cli is routd's command line for people: it shows and changes routes and groups
// through a running routd.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"unicode"

	"arizuko/pkg/daemon"
	"arizuko/pkg/fault"
	"arizuko/pkg/httpx"
)

// Command is a subcommand of routd: its arguments, and where it prints.
type Command = func(ctx context.Context, args []string, out io.Writer) error

// Commands are the subcommands. connect makes the client of the running routd.
func Commands(connect func() (*httpx.Client, error)) map[string]Command {
	c := &cli{connect: connect}
	return map[string]Command{
		"routes": choose("routes", map[string]Command{
			"list": c.listRoutes, "add": c.addRoute, "rm": c.removeRoutes, "test": c.testRoutes,
		}, "list | add | rm | test"),
		"groups": choose("groups", map[string]Command{
			"list": c.listGroups, "add": c.addGroup, "rm": c.removeGroups,
		}, "list | add | rm"),
	}
}

type cli struct {
	connect func() (*httpx.Client, error)
}

func choose(name string, verbs map[string]Command, usage string) Command {
	return func(ctx context.Context, args []string, out io.Writer) error {
		if len(args) > 0 {
			if verb, ok := verbs[args[0]]; ok {
				err := verb(ctx, args[1:], out)
				if errors.Is(err, flag.ErrHelp) {
					return nil
				}
				return err
			}
		}
		return wrongUsage("usage: routd %s %s", name, usage)
	}
}

func wrongUsage(format string, args ...any) error {
	return &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf(format, args...)}
}

// call asks routd. That nobody answers is explained in terms of what to do.
func (c *cli) call(ctx context.Context, method, path string, in, out any) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	err = client.Do(ctx, method, path, in, out)
	var network *net.OpError
	if fault.KindOf(err) == fault.Unavailable && errors.As(err, &network) {
		return fmt.Errorf("routd is not running at %s: start it with `routd`, or set ROUTD_URL (%w)", client.Base, network)
	}
	return err
}

// flags makes the flag set of one verb. usage is what stands behind "routd".
func flags(usage string, out io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet(usage, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are returned; printing them too would show them twice
	fs.Usage = func() {
		fs.SetOutput(out)
		fmt.Fprintf(out, "usage: routd %s\n", usage)
		fs.PrintDefaults()
		fs.SetOutput(io.Discard)
	}
	return fs
}

// parse reads flags before, between and behind the other arguments, which it returns.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, wrongUsage("%w (usage: routd %s)", err, fs.Name())
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}

// parseNone is parse for a verb without arguments other than flags.
func parseNone(fs *flag.FlagSet, args []string) error {
	rest, err := parse(fs, args)
	if err == nil && len(rest) > 0 {
		err = wrongUsage("what is %q? (usage: routd %s)", rest[0], fs.Name())
	}
	return err
}

// jsonFlag is a flag's value that must be JSON; "" is none.
func jsonFlag(name, value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	if !json.Valid([]byte(value)) {
		return nil, wrongUsage("--%s: %.80q is no JSON", name, value)
	}
	return json.RawMessage(value), nil
}

// table prints rows of cells under a heading, aligned.
func table(out io.Writer, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		for i := range row {
			row[i] = printable(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// orNone is a cell that may be empty.
func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// printable keeps what others wrote into the database from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
