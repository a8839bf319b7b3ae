// Fakeplatform serves a fake of a chat platform, or of the API that Claude Code calls, to try an
// adapter or an agent with by hand. It prints the variables to set. A chat platform has a page at
// / to write to the bot as several users; the model prints a line for each call, and obeys
// the last line of a message, such as "say hello", "slow 5", "tool Bash echo hi" or
// "error 529".
//
//	go run arizuko/pkg/testkit/fakes/cmd/fakeplatform telegram|discord|slack|anthropic [flags]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/testkit/fakes/internal/page"
)

const usage = "usage: fakeplatform telegram|discord|slack|anthropic [-h] [flags]"

func main() {
	if buildinfo.Print(os.Stdout, "fakeplatform", os.Args[1:]) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakeplatform:", err)
		os.Exit(1)
	}
}

// platform is a fake that can be served.
type platform struct {
	addr string // the default of -addr
	// declare declares the platform's own flags, and returns a function that makes the fake of their values.
	declare func(*flag.FlagSet) func() fake
}

// fake is a fake that is not served yet.
type fake struct {
	server interface {
		StartWith(addr string, handler http.Handler) (base string, err error)
		Close() error
	}
	handler http.Handler                             // the fake, with its page if it has one
	env     func(base string) []string               // NAME=value for its client
	hasPage bool                                     // at the base of its URLs
	report  func(ctx context.Context, out io.Writer) // prints calls until ctx ends; may be nil
}

func platforms() map[string]platform {
	return map[string]platform{
		"telegram":  {"127.0.0.1:8181", newTelegram},
		"discord":   {"127.0.0.1:8182", newDiscord},
		"slack":     {"127.0.0.1:8183", newSlack},
		"anthropic": {"127.0.0.1:8184", newAnthropic},
	}
}

// run serves a fake until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	p, known := platforms()[args[0]]
	if !known {
		return fmt.Errorf("unknown platform %q; %s", args[0], usage)
	}
	flags := flag.NewFlagSet("fakeplatform "+args[0], flag.ContinueOnError)
	addr := flags.String("addr", p.addr, "`address` to listen on, of this machine only")
	build := p.declare(flags)
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if err := page.CheckLocal(*addr); err != nil {
		return err
	}
	return serve(ctx, build(), *addr, out)
}

func serve(ctx context.Context, f fake, addr string, out io.Writer) error {
	base, err := f.server.StartWith(addr, f.handler)
	if err != nil {
		return err
	}
	for _, variable := range f.env(base) {
		fmt.Fprintf(out, "export %s\n", variable)
	}
	if f.hasPage {
		fmt.Fprintf(out, "# write to the bot at %s/\n", base)
	}
	if f.report != nil {
		f.report(ctx, out)
	}
	<-ctx.Done()
	return f.server.Close()
}
