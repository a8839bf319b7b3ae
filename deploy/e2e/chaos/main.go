// Stress puts the path of messages to the test: with daemons that die at named places, one after
// another, and over a long time.
//
//	stress faults [-n N] [-seed S]
//	stress soak [-for 3m] [-seed S]
//
// It tells what it does on stderr, and what came of it on stdout: the last line counts what was
// lost, doubled, reordered or stuck. The exit code is 0 if that is nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	v, err := run(ctx, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
	}
	if v != nil {
		fmt.Println(v)
	}
	if err != nil || !v.good() {
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (v *verdict, err error) {
	if len(args) == 0 {
		args = []string{""}
	}
	flags := flag.NewFlagSet("stress "+args[0], flag.ContinueOnError)
	n := flags.Int("n", everywhere(), "how often a daemon dies; by default once in each place")
	lasts := flags.Duration("for", 3*time.Minute, "how long people write")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "repeats the choices of an earlier run")
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if args[0] != "faults" && args[0] != "soak" {
		return nil, errors.New("say what to do: faults or soak")
	}
	fmt.Fprintf(out, "seed %d\n", *seed)
	bin, err := build()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	if args[0] == "soak" {
		return soak(ctx, bin, *seed, *lasts, out)
	}
	return faults(ctx, bin, *seed, *n, out)
}

func faults(ctx context.Context, bin string, seed uint64, n int, out io.Writer) (v *verdict, err error) {
	t, err := open(ctx, bin, seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.faults(ctx, n, seed, out)
}
