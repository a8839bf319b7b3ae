// Package cli is dashd's command line for people: it asks a running dashd.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"arizuko/pkg/daemon"
	"arizuko/pkg/fault"
	"arizuko/pkg/httpx"
)

const (
	statusUsage = "status [CHAT_JID] [--thread ID] [--topic TOPIC] [--json]"
	loginUsage  = "login"
)

// Command is a subcommand of dashd: its arguments, and where it prints.
type Command = func(ctx context.Context, args []string, out io.Writer) error

// Commands are the subcommands. connect makes the client of the running dashd.
func Commands(connect func() (*httpx.Client, error)) map[string]Command {
	c := &cli{connect: connect}
	return map[string]Command{"status": c.status, "login": c.login}
}

type cli struct {
	connect func() (*httpx.Client, error)
}

// status prints how the instance, or one chat, is.
func (c *cli) status(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet(statusUsage, flag.ContinueOnError)
	thread := fs.String("thread", "", "a thread of the chat")
	topic := fs.String("topic", "", "a tab of a web chat, e.g. '#deploy'")
	asJSON := fs.Bool("json", false, "print all of it as JSON")
	chats, err := parse(fs, args, 1, out)
	if err != nil {
		return unlessHelp(err)
	}
	query := url.Values{}
	for _, chat := range chats {
		query = url.Values{"chat_jid": {chat}, "thread_id": {*thread}, "topic": {*topic}}
	}
	var raw httpx.Raw
	if err := c.call(ctx, http.MethodGet, "/status?"+query.Encode(), &raw); err != nil {
		return err
	}
	var report struct{ Text string }
	if err := json.Unmarshal(raw, &report); err != nil {
		return fmt.Errorf("dashd answered something else: %w", err)
	}
	text := printable(report.Text) + "\n"
	if *asJSON {
		text = string(raw)
	}
	_, err = io.WriteString(out, text)
	return err
}

// login prints a link that logs a browser in, once.
func (c *cli) login(ctx context.Context, args []string, out io.Writer) error {
	if _, err := parse(flag.NewFlagSet(loginUsage, flag.ContinueOnError), args, 0, out); err != nil {
		return unlessHelp(err)
	}
	var link struct{ URL string }
	if err := c.call(ctx, http.MethodPost, "/v1/login-link", &link); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, printable(link.URL))
	return err
}

// call asks dashd. That nobody answers is explained in terms of what to do.
func (c *cli) call(ctx context.Context, method, path string, out any) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	err = client.Do(ctx, method, path, nil, out)
	var network *net.OpError
	if fault.KindOf(err) == fault.Unavailable && errors.As(err, &network) {
		return fmt.Errorf("dashd is not running at %s: start it with `dashd`, or set DASHD_URL (%w)", client.Base, network)
	}
	return err
}

// parse reads flags before, between and behind the other arguments, of which there are at most
// so many, and returns these. Help is printed to out and comes back as flag.ErrHelp.
func parse(fs *flag.FlagSet, args []string, most int, out io.Writer) (rest []string, err error) {
	fs.SetOutput(io.Discard) // errors are returned; printing them too would show them twice
	for {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprintf(out, "usage: dashd %s\n", fs.Name())
			fs.SetOutput(out)
			fs.PrintDefaults()
			return nil, err
		case err != nil:
			return nil, wrongUsage("%w (usage: dashd %s)", err, fs.Name())
		case fs.NArg() == 0:
			return rest, nil
		case len(rest) == most:
			return nil, wrongUsage("what is %q? (usage: dashd %s)", fs.Arg(0), fs.Name())
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}

func unlessHelp(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

func wrongUsage(format string, args ...any) error {
	return &daemon.ExitError{Code: daemon.ExitRefused, Err: fmt.Errorf(format, args...)}
}

// printable keeps what others wrote into the database from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
