package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// routing runs the benchmarks of the route index with 10,000 routes and reports the slowest kind of
// match.
func (b *bench) routing(ctx context.Context) ([]figure, error) {
	slowest, err := b.slowest(ctx, "^BenchmarkFirst10k$", "arizuko/pkg/match")
	if err != nil {
		return nil, err
	}
	return []figure{
		{name: "routing with 10,000 routes, slowest kind of match",
			note: slowest.name + "; floor: a map of 10,000 strings", unit: "µs",
			measured: slowest.ns / 1000, floor: measureLookup().Seconds() * 1e6, ratio: 40},
		{name: "routing with 10,000 routes, allocations", unit: "", measured: slowest.allocs, budget: none},
	}, nil
}

// slowest runs the benchmarks of a package that match a pattern.
func (b *bench) slowest(ctx context.Context, pattern, pkg string) (slowest benchmark, err error) {
	benchtime := "1s"
	if b.quick {
		benchtime = "100x"
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", benchtime, pkg)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return slowest, fmt.Errorf("%w\n%s", err, out)
	}
	return parseBenchmarks(string(out))
}

// snapshots measures how long gated looks at a group's folder before a turn.
func (b *bench) snapshots(ctx context.Context) ([]figure, error) {
	took, err := b.slowest(ctx, "^BenchmarkBegin_10000Unchanged$", "arizuko/gated/internal/running/snapshots")
	return []figure{{name: "look at a group's folder before a turn, 10,000 unchanged files", unit: "ms",
		measured: took.ns / 1e6, budget: 50}}, err
}

// none is the budget of a count that must be 0: a budget of 0 would mean no budget.
const none = 0.5

// measureLookup returns how long one lookup in a map of 10,000 strings takes.
func measureLookup() time.Duration {
	const size, lookups = 10_000, 2_000_000
	table, keys := make(map[string]int, size), make([]string, size)
	for i := range keys {
		keys[i] = chatJID(i)
		table[keys[i]] = i
	}
	found, began := 0, time.Now()
	for i := range lookups {
		if table[keys[i%size]] == i%size {
			found++
		}
	}
	took := time.Since(began)
	if found != lookups {
		panic("bench: a key is missing") // so that the loop has an effect
	}
	return took / lookups
}

type benchmark struct {
	name       string
	ns, allocs float64 // per operation
}

// parseBenchmarks parses the output of `go test -bench -benchmem`. It returns the slowest benchmark, with
// the most allocations of any.
func parseBenchmarks(out string) (slowest benchmark, err error) {
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		var b benchmark
		_, b.name, _ = strings.Cut(fields[0], "/")
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return slowest, fmt.Errorf("benchmark line %q: %w", lines.Text(), err)
			}
			switch fields[i+1] {
			case "ns/op":
				b.ns = value
			case "allocs/op":
				b.allocs = value
			}
		}
		most := max(slowest.allocs, b.allocs)
		if b.ns > slowest.ns {
			slowest = b
		}
		slowest.allocs = most
	}
	if slowest.ns == 0 {
		return slowest, errors.New("no benchmarks in the output of go test")
	}
	return slowest, nil
}
