package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "github.com/mattn/go-sqlite3" // reads the schema

	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
)

const (
	// maxSlowdown is how much worse than the other build a figure may be, beyond the spread.
	maxSlowdown = 0.05
	// comparedDivisor reduces the counts of a scenario, which a comparison runs many times.
	comparedDivisor = 4
)

// comparison has a figure's values of both builds, one per round.
type comparison struct {
	figure
	before, after []float64
}

// compare runs the scenarios alternately with the programs of another build and with ours, and prints
// the ratios. It reports whether no compared figure got worse.
func (b *bench) compare(ctx context.Context, o options, chosen []scenario, out io.Writer) (ok bool, err error) {
	oldBin := filepath.Join(b.dir, "before")
	if err := linkPrograms(oldBin, o.against, b.bin); err != nil {
		return false, fmt.Errorf("-against: %w", err)
	}
	if err := b.checkSchemas(oldBin); err != nil {
		return false, fmt.Errorf("-against: %w", err)
	}
	after := &bench{quick: b.quick, divisor: comparedDivisor, bin: b.bin, dir: b.dir}
	before := &bench{quick: b.quick, divisor: comparedDivisor, bin: oldBin, dir: b.dir}

	var all []*comparison
	for _, s := range chosen {
		compared, err := compareScenario(ctx, s, before, after, o.rounds)
		if err != nil {
			return false, err
		}
		all = append(all, compared...)
	}
	fmt.Fprint(out, comparisonReport(all, b.quick))
	return b.quick || !slices.ContainsFunc(all, func(c *comparison) bool { return c.worse() }), nil
}

// compareScenario runs a scenario in rounds. The build that goes first changes from round to round.
func compareScenario(ctx context.Context, s scenario, before, after *bench, rounds int) (all []*comparison, err error) {
	for round := range rounds {
		order := []*bench{before, after}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, b := range order {
			name := map[bool]string{true: "before", false: "after"}[b == before]
			fmt.Fprintf(os.Stderr, "measuring %s: round %d/%d, %s\n", s.name, round+1, rounds, name)
			figures, err := b.runScenario(ctx, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if all, err = addFigures(all, figures, b == before); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// addFigures adds one round's figures of a build. The first call decides which figures are compared.
func addFigures(all []*comparison, figures []figure, before bool) ([]*comparison, error) {
	figures = slices.DeleteFunc(figures, func(f figure) bool { return f.compared == 0 })
	if all == nil {
		for _, f := range figures {
			all = append(all, &comparison{figure: f})
		}
	}
	if len(figures) != len(all) {
		return nil, fmt.Errorf("%d compared figures instead of %d", len(figures), len(all))
	}
	for i, f := range figures {
		c := all[i]
		if c.name != f.name {
			return nil, fmt.Errorf("figure %q instead of %q", f.name, c.name)
		}
		if before {
			c.before = append(c.before, f.compared)
		} else {
			c.after = append(c.after, f.compared)
		}
	}
	return all, nil
}

// ratio is the median of ours over that of the other build.
func (c *comparison) ratio() float64 { return median(c.after) / median(c.before) }

// spread is the noise of the rounds: half the range over the median, of the noisier build.
func (c *comparison) spread() float64 {
	of := func(values []float64) float64 {
		return (slices.Max(values) - slices.Min(values)) / 2 / median(values)
	}
	return max(of(c.before), of(c.after))
}

func (c *comparison) worse() bool {
	slowdown := c.ratio()
	if c.more {
		slowdown = 1 / slowdown
	}
	// Not <=, so that NaN counts as worse.
	return !(slowdown-1 <= maxSlowdown+c.spread())
}

func (c *comparison) result(quick bool) string {
	switch {
	case quick:
		return ""
	case c.worse():
		return "**worse**"
	}
	return "ok"
}

func comparisonReport(all []*comparison, quick bool) string {
	var b strings.Builder
	if quick {
		b.WriteString("Quick run: the figures mean nothing.\n\n")
	}
	b.WriteString("| figure | before | after | after/before | spread | result |\n|---|--:|--:|--:|--:|---|\n")
	for _, c := range all {
		unit := cmp.Or(c.comparedUnit, c.unit)
		fmt.Fprintf(&b, "| %s | %s | %s | %.3f | ± %.1f %% | %s |\n", c.name, quantity(median(c.before), unit),
			quantity(median(c.after), unit), c.ratio(), 100*c.spread(), c.result(quick))
	}
	return b.String()
}

// median is the middle value, of an even number the mean of both.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// linkPrograms makes a folder with another build's daemons beside our bench agent.
func linkPrograms(folder, theirs, ours string) error {
	theirs, err := filepath.Abs(theirs)
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	// the agents of a gated that is root, and from elsewhere, are other users
	if err := os.Chmod(ours, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"migrate", "routd", "gated", "teled", "discd", "slakd"} {
		program := filepath.Join(theirs, name)
		_, err := os.Stat(program)
		errs = append(errs, err, os.Symlink(program, filepath.Join(folder, name)))
	}
	return errors.Join(append(errs, os.Symlink(filepath.Join(ours, "agent"), filepath.Join(folder, "agent")))...)
}

// errSchema means that this program cannot read and write the other build's database.
var errSchema = errors.New("the builds have different database schemas")

func (b *bench) checkSchemas(oldBin string) error {
	var schemas [2][]string
	for i, bin := range []string{oldBin, b.bin} {
		var err error
		if schemas[i], err = b.schema(bin); err != nil {
			return err
		}
	}
	if !slices.Equal(schemas[0], schemas[1]) {
		return errSchema
	}
	return nil
}

// schema returns the columns of all tables and indexes of a build.
func (b *bench) schema(bin string) (columns []string, err error) {
	i, err := harness.NewIn(b.dir, bin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	if err := i.Migrate(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", "file:"+i.Database()+"?mode=ro")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return invariants.Lines(db, `SELECT o.type, o.name, c.name, c.type, c."notnull", c.dflt_value, c.pk
		FROM sqlite_master o LEFT JOIN pragma_table_xinfo(o.name) c ORDER BY o.type, o.name, c.cid`)
}
