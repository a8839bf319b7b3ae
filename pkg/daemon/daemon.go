// Package daemon is the frame of all daemons: the command line with its exit codes, the steps of
// the start in their order, the heartbeat, and the stop in reverse order.
package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"arizuko/migrations"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/config"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/httpx"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Exit codes of every daemon. Supervisors restart after all but ExitRefused.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitBusy    = 75 // another process holds the lock, or a wait timed out (EX_TEMPFAIL)
	ExitRefused = 78 // invalid configuration or usage, or too new a schema (EX_CONFIG)
)

// ExitError is an error with the exit code it leads to.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// Program is one daemon's command line.
type Program struct {
	Name string
	// Serve runs until ctx ends and then returns nil.
	Serve func(ctx context.Context) error
	// Check returns what is wrong with the configuration, credentials and permissions.
	Check func(ctx context.Context, out io.Writer) error
	// Commands are further subcommands by name; they return flag.ErrHelp after printing help.
	Commands map[string]func(ctx context.Context, args []string, out io.Writer) error
	// Summaries describes each of Commands in a line, for the help.
	Summaries map[string]string
	// Privileged names the subcommands that stay root in another user's data folder, and see to it themselves that they
	// follow no link of that user's. Run by root, all others become that user.
	Privileged []string
}

// Run interprets the command line, os.Args without the program's name, and returns the exit
// code. Errors go to stderr, one line each.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal kills the process, even if the stop is still waiting.
	defer context.AfterFunc(ctx, stop)()
	if buildinfo.Print(stdout, p.program(), args) {
		return ExitOK
	}
	err := p.dispatch(ctx, args, stdout)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitOK
	}
	for line := range strings.Lines(strings.TrimSpace(err.Error()) + "\n") {
		fmt.Fprintf(stderr, "%s: %s", p.Name, line)
	}
	return exitCode(err)
}

func (p Program) dispatch(ctx context.Context, args []string, out io.Writer) error {
	name := "serve"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if !slices.Contains(p.Privileged, name) && !buildinfo.IsHelp(name) && !slices.ContainsFunc(args, buildinfo.IsHelp) {
		if err := dataowner.Become(dataFolder()); err != nil {
			return err
		}
	}
	if command, ok := p.Commands[name]; ok {
		if err := command(ctx, args, out); !errors.Is(err, flag.ErrHelp) {
			return err
		}
		return nil
	}
	if buildinfo.IsHelp(name) || slices.ContainsFunc(args, buildinfo.IsHelp) {
		_, err := fmt.Fprintf(out, "%s\n%s", p.usage(), p.help())
		return err
	}
	if len(args) == 0 {
		switch name {
		case "serve":
			return p.Serve(ctx)
		case "check":
			return p.check(ctx, out)
		case "health":
			return p.health(ctx, out)
		}
	}
	return &ExitError{ExitRefused, errors.New(p.usage())}
}

// program is the name of the program, which is the daemon's without an account.
func (p Program) program() string {
	name, _ := msg.SplitAccount(p.Name)
	return name
}

func (p Program) usage() string {
	names := []string{"serve", "check", "health"}
	for name := range p.Commands {
		names = append(names, name)
	}
	slices.Sort(names[3:])
	return fmt.Sprintf("usage: %s [%s | --help | --version]", p.program(), strings.Join(names, " | "))
}

func (p Program) help() string {
	help := ""
	line := func(name, what string) { help += fmt.Sprintf("  %-9s  %s\n", name, what) }
	line("serve", "run until SIGTERM; without a command, too")
	line("check", "check configuration, credentials and permissions")
	line("health", "ask the running daemon whether it is ready")
	for _, name := range slices.Sorted(maps.Keys(p.Summaries)) {
		line(name, p.Summaries[name])
	}
	if len(p.Commands) > 0 {
		help += "The other commands have a --help of their own.\n"
	}
	return help + "Settings are environment variables: " + p.program() + "/README.md lists them.\n"
}

func (p Program) check(ctx context.Context, out io.Writer) error {
	if err := withSchema(ctx, errors.Join(p.Check(ctx, out), checkSecret(), checkZone())); err != nil {
		return err
	}
	if note := schema(ctx).Newer(migrations.Latest()); note != "" {
		fmt.Fprintln(out, "warning:", note)
	}
	fmt.Fprintf(out, "%s: ok\n", p.Name)
	return nil
}

// withSchema adds to an error that this program cannot use the database, unless err says so.
func withSchema(ctx context.Context, err error) error {
	problem := SchemaProblem(ctx)
	if problem == nil || err != nil && strings.Contains(err.Error(), problem.Error()) {
		return err
	}
	return errors.Join(err, problem)
}

// health asks the running daemon whether it is ready. It has two exit codes only.
func (p Program) health(ctx context.Context, out io.Writer) error {
	base, err := environment()
	if err != nil {
		return &ExitError{ExitFailure, err}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	client := httpx.NewLocalClient(base.Socket(p.Name))
	defer client.HTTP.CloseIdleConnections()
	status, body, err := client.Get(ctx, "/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("not ready: %s", body)
	}
	if err != nil {
		return &ExitError{ExitFailure, withSchema(ctx, err)}
	}
	_, err = out.Write(body)
	return err
}

func exitCode(err error) int {
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, new(config.Problems)), errors.Is(err, store.ErrSchemaRefused), errors.Is(err, store.ErrMoved),
		errors.Is(err, migrations.ErrServer), errors.Is(err, store.ErrURL):
		return ExitRefused
	case errors.Is(err, lockfile.ErrHeld):
		return ExitBusy
	default:
		return ExitFailure
	}
}
