// Fakeanthropic is a model's API to play with: it answers by what the last line of a message
// says, such as "say hello", "slow 5", "tool Bash echo hi" or "error 529".
//
//	go run arizuko/pkg/testkit/fakes/cmd/fakeanthropic [-addr 127.0.0.1:8184] [-key KEY]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"arizuko/pkg/testkit/fakes/anthropic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakeanthropic:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and prints a line for each call.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fakeanthropic", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8184", "where to listen; this machine only")
	key := flags.String("key", anthropic.DefaultKey, "the key that is let in")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if host, _, err := net.SplitHostPort(*addr); err != nil || !loopback(host) {
		return fmt.Errorf("-addr %s: want an address of this machine, as in 127.0.0.1:8184", *addr)
	}
	model := anthropic.New(anthropic.Options{Key: *key})
	base, err := model.Start(*addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export ANTHROPIC_API_KEY=%s\nexport ANTHROPIC_BASE_URL=%s\n", *key, base)
	report(ctx, model, out)
	return model.Close()
}

// report prints each call when it is answered, in the order they came.
func report(ctx context.Context, model *anthropic.Server, out io.Writer) {
	shown := 0
	for {
		changed := model.Changed()
		for _, c := range model.Calls()[shown:] {
			if c.Open {
				break
			}
			fmt.Fprintf(out, "# %s %s → %d %q\n", c.At.Format("15:04:05"), c.Method, c.Status, c.Command)
			shown++
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
