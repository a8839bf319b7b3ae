// Chaos tests whole instances under load: one program kills daemons at failpoints, another disturbs
// them for a long time.
//
//	chaos faults [-n N] [-seed S] [-provoked] [-db postgres]
//	chaos soak [-for 3m] [-seed S] [-db postgres]
//	chaos failover [-only PATTERN] [-seed S]: several machines, and the database servers that they share
//
// Progress goes to stderr, the result to stdout: its last line counts messages that were lost,
// doubled, reordered or stuck. The exit code is 0 if all counts are 0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"arizuko/pkg/testkit/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r, err := run(ctx, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if r != nil {
		fmt.Println(r)
	}
	if err != nil || !r.ok() {
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (r *result, err error) {
	if len(args) == 0 {
		args = []string{""}
	}
	flags := flag.NewFlagSet("chaos "+args[0], flag.ContinueOnError)
	n := flags.Int("n", pointCount(), "faults: how often a daemon is killed; by default once per failpoint")
	length := flags.Duration("for", 3*time.Minute, "soak: duration of the load")
	provoked := flags.Bool("provoked", false,
		"faults: no random load and one try, to test that provocations alone reach each failpoint")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random choices, to repeat a run")
	db := flags.String("db", "sqlite",
		"faults, soak: where the database is: sqlite, a file, or postgres, a server that is started for the run")
	only := flags.String("only", "",
		"failover: a regular expression for the names of disruptions, to make some only")
	logs := flags.String("logs", "", "failover: a folder for the whole logs of daemons, Patroni, Postgres and etcd")
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"faults", "soak", "failover"}, args[0]) || *db != "sqlite" && *db != "postgres" {
		return nil, errors.New("usage: chaos faults|soak|failover [flags]")
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "seed %d\n", *seed)

	bin, err := build()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	if args[0] == "failover" {
		return failover(ctx, bin, *seed, pattern, *logs, out)
	}
	o := options{bin: bin, seed: *seed}
	if *db == "postgres" {
		server, startErr := postgres.Start(ctx, "")
		if startErr != nil {
			return nil, startErr
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		o.database = server.URL()
	}
	if args[0] == "soak" {
		return soak(ctx, o, *length, out)
	}
	return faults(ctx, o, *n, *provoked, out)
}

// options are common to faults and soak.
type options struct {
	bin      string // the folder of the programs
	database string // its URL, "" for a file
	seed     uint64
}
