// Bench measures the message path: real migrate, routd and gated with an agent that answers at once.
// Beside them it measures a floor program, which does the same reading, piping and committing without
// any logic. All data is on a real disk with synchronous=FULL. Bench prints a table of figures, budgets
// and floors, and exits 1 if a figure is over its budget. A complete run also writes the table to
// docs/reference/benchmark.md.
//
//	go run ./deploy/e2e/bench [-quick] [-only name,…] [-page file] [-dir folder]
//
// With -against it compares this build with the programs of another one, such as the bin folder of
// `make build` in another worktree: it runs the scenarios alternately with both, prints the ratios, and
// exits 1 if this build is slower. Both builds must have the same database schema.
//
//	go run ./deploy/e2e/bench -against folder [-rounds n] [-only name,…] [-dir folder]
//
// The machine should do nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"arizuko/pkg/testkit/postgres"
)

// options are the command line's.
type options struct {
	quick   bool
	only    string // comma-separated names of scenarios, "" for all
	page    string
	dir     string
	against string // the folder with the programs of another build
	rounds  int    // of a comparison
}

// bench measures one build.
type bench struct {
	quick   bool
	divisor int    // of the counts in a comparison, which repeats everything; otherwise 1
	floors  bool   // measure the floor too
	bin     string // the folder of the programs
	dir     string // the parent of the data folders

	systems []*system // stopped at the end of the scenario

	server    *postgres.Server // nil until a scenario needs it
	databases int              // that it has
}

// scenario measures some figures of the table.
type scenario struct {
	name     string
	run      func(*bench, context.Context) ([]figure, error)
	compared bool // by -against
}

func scenarios() []scenario {
	return []scenario{
		{"latency", (*bench).latency, true},
		{"sustained", (*bench).sustained, true},
		{"routing", (*bench).routing, false},
		{"snapshots", (*bench).snapshots, false},
		{"stored", (*bench).stored, false},
		{"idle", (*bench).idle, true},
		{"adapters", (*bench).adapters, true},
		{"progress", (*bench).progress, false},
		{"agents", (*bench).agents, false},
		{"backlog", (*bench).backlog, false},
		{"breakdown", (*bench).breakdown, false},
		{"postgres", (*bench).postgres, false},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case !ok:
		os.Exit(1)
	}
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "small counts: checks that everything runs, ignores budgets")
	flags.StringVar(&o.only, "only", "", "run these scenarios only, e.g. latency,idle")
	flags.StringVar(&o.page, "page", "",
		"the page that gets the table of a complete run (default docs/reference/benchmark.md of the workspace)")
	// The usual temporary folder may be in memory.
	flags.StringVar(&o.dir, "dir", "/var/tmp", "parent of the data folders: a folder on a disk")
	flags.StringVar(&o.against, "against", "", "compare with the programs in this folder")
	flags.IntVar(&o.rounds, "rounds", 5, "with -against: how often each scenario is run with each build")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 2 {
		return o, errors.New("-rounds: at least 2 rounds are needed to tell noise")
	}
	return o, nil
}

// run reports whether all figures are within their limits.
func run(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	o, err := parseOptions(args)
	if err != nil {
		return false, err
	}
	chosen, err := choose(o.only, o.against != "")
	if err != nil {
		return false, err
	}
	machine, err := describeMachine(o.dir)
	if err != nil {
		return false, err
	}

	b := &bench{quick: o.quick, divisor: 1, floors: true}
	if b.dir, err = os.MkdirTemp(o.dir, "arizuko-bench-"); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	defer func() { err = errors.Join(err, b.stopServer()) }()
	if b.bin, err = build(""); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(b.bin) }()

	if o.against != "" {
		return b.compare(ctx, o, chosen, out)
	}
	return b.measure(ctx, o, chosen, machine, out)
}

// choose returns the scenarios of a comma-separated list, by default all. A comparison can't have
// each.
func choose(only string, compared bool) (chosen []scenario, err error) {
	all := slices.DeleteFunc(scenarios(), func(s scenario) bool { return compared && !s.compared })
	if only == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: unknown scenario", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// measure runs the scenarios and prints the table. One that fails ends none of the others. A complete run
// without a failure writes the figures with a budget, and the steps of a message, to the page too.
func (b *bench) measure(ctx context.Context, o options, chosen []scenario, machine string, out io.Writer) (ok bool,
	err error) {
	var p *page
	if !b.quick && o.only == "" {
		if p, err = openPage(ctx, o.page); err != nil {
			return false, err
		}
	}

	var figures []figure
	for _, s := range chosen {
		fmt.Fprintln(os.Stderr, "measuring", s.name)
		more, failure := b.runScenario(ctx, s)
		if ctx.Err() != nil {
			return false, failure
		}
		figures, err = append(figures, more...), errors.Join(err, failure)
	}

	fmt.Fprint(out, report(machine, figures, b.quick))
	if p != nil && err == nil {
		err = p.write(report(machine, slices.DeleteFunc(slices.Clone(figures), figure.onlyPrinted), false))
	}
	return b.quick || !slices.ContainsFunc(figures, figure.over), err
}

// runScenario runs a scenario and stops its systems.
func (b *bench) runScenario(ctx context.Context, s scenario) ([]figure, error) {
	figures, err := s.run(b, ctx)
	if err = errors.Join(err, b.stopSystems()); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return figures, nil
}

func (b *bench) stopSystems() error {
	var errs []error
	for _, s := range b.systems {
		errs = append(errs, s.stop())
	}
	b.systems = nil
	return errors.Join(errs...)
}

// pick returns a count: full, or less in a comparison or a quick run.
func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return max(full/b.divisor, quick)
}
