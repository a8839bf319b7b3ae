// Bench measures the message path: real migrate, routd and gated, an agent
// that answers at once, and beside them a floor program that does the same
// reading, piping and committing without any logic. Everything lies on a real
// disk with synchronous=FULL. It prints a table of what was measured, what is
// allowed and what the floor takes, and exits 1 if anything is over budget.
//
//	go run ./deploy/e2e/bench [-quick] [-only name,…] [-o file] [-dir folder]
//
// Run it from anywhere inside the workspace, on a machine that does nothing
// else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// bench is one run of the program.
type bench struct {
	quick bool
	bin   string // the folder of the programs
	dir   string // where each system has its data folder

	systems []*system // to be stopped when the scenario is over
}

// scenario is one group of lines in the table.
type scenario struct {
	name string
	run  func(*bench, context.Context) ([]line, error)
}

func scenarios() []scenario {
	return []scenario{
		{"latency", (*bench).latency},
		{"sustained", (*bench).sustained},
		{"routing", (*bench).routing},
		{"stored", (*bench).stored},
		{"idle", (*bench).idle},
		{"adapters", (*bench).adapters},
		{"agents", (*bench).agents},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	over, err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case over:
		os.Exit(1)
	}
}

// run says whether anything was over its budget.
func run(ctx context.Context, args []string) (over bool, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "small counts: shows that everything runs, judges nothing")
	only := flags.String("only", "", "run these alone, e.g. latency,idle")
	out := flags.String("o", "", "write the table to this file too")
	// Not the usual temporary folder, which may be memory.
	parent := flags.String("dir", "/var/tmp", "where to put the databases: a folder on a disk")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	chosen, err := choose(*only)
	if err != nil {
		return false, err
	}
	machine, err := describeMachine(*parent)
	if err != nil {
		return false, err
	}
	b := &bench{quick: *quick}
	if b.dir, err = os.MkdirTemp(*parent, "arizuko-bench-"); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.bin, err = build(); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(b.bin) }()
	lines, err := b.measure(ctx, chosen)
	if err != nil {
		return false, err
	}
	table := report(machine, lines, b.quick)
	fmt.Print(table)
	if *out != "" {
		err = os.WriteFile(*out, []byte(table), 0o644)
	}
	return !b.quick && slices.ContainsFunc(lines, line.over), err
}

// choose returns the scenarios of a comma-separated list, all for none.
func choose(only string) ([]scenario, error) {
	all := scenarios()
	if only == "" {
		return all, nil
	}
	var chosen []scenario
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no such scenario", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (b *bench) measure(ctx context.Context, chosen []scenario) (lines []line, err error) {
	for _, s := range chosen {
		fmt.Fprintln(os.Stderr, "measuring", s.name, "…")
		more, err := s.run(b, ctx)
		if err = errors.Join(err, b.stop()); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// stop ends every system that a scenario has made.
func (b *bench) stop() error {
	var errs []error
	for _, s := range b.systems {
		errs = append(errs, s.stop())
	}
	b.systems = nil
	return errors.Join(errs...)
}

// pick is a count in full, and in a quick run.
func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}
