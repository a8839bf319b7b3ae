package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/store"
)

// size is a measure that must not grow under constant load.
type size struct {
	name, unit string
	slack      float64 // growth that is noise: memory not yet returned, six more agents of four files each
	read       func() (float64, error)
}

func (l *loadedInstance) sizes() []size {
	all := []size{{"write-ahead log", "MB", 2, l.walSize}}
	for _, daemon := range daemons {
		metric := func(name string, unit float64) func() (float64, error) {
			return func() (float64, error) { return l.metric(daemon, name, unit) }
		}
		all = append(all,
			size{daemon + " memory", "MB", 4, metric("process_resident_memory_bytes", 1e6)},
			size{daemon + " files", "", 24, metric("process_open_fds", 1)},
			size{daemon + " goroutines", "", 24, metric("go_goroutines", 1)},
		)
	}
	return all
}

const (
	// samples is how often the sizes are measured.
	samples = 12
	// maxGrowth is the factor by which a size may grow from the first to the last third of the
	// samples, beyond its slack.
	maxGrowth = 1.1
)

// measureGrowth sends messages without disruptions and returns the sizes that have grown. It compares the minima
// of the first and the last third of the samples, since garbage comes and goes.
func (l *loadedInstance) measureGrowth(ctx context.Context, length time.Duration, out io.Writer) (growth, err error) {
	warm := min(warmUp, length/2)
	if err := l.sendFor(ctx, warm); err != nil {
		return nil, err
	}
	written := len(l.load.all)
	var seen [][]float64
	for range samples {
		now, err := l.measure()
		if err == nil {
			err = l.sendFor(ctx, (length-warm)/samples)
		}
		if err != nil {
			return nil, err
		}
		seen = append(seen, now)
	}

	fmt.Fprintf(out, "undisrupted: messages=%d\n", len(l.load.all)-written)
	var errs []error
	for i, s := range l.sizes() {
		before, after := minimum(seen[:samples/3], i), minimum(seen[samples-samples/3:], i)
		fmt.Fprintf(out, "%-16s %6.1f → %6.1f %s\n", s.name, before, after, s.unit)
		if after > before*maxGrowth+s.slack {
			errs = append(errs, fmt.Errorf("%s grows: %.1f → %.1f %s", s.name, before, after, s.unit))
		}
	}
	return errors.Join(errs...), nil
}

// minimum is the smallest value of the size with index i.
func minimum(samples [][]float64, i int) float64 {
	smallest := math.Inf(1)
	for _, s := range samples {
		smallest = min(smallest, s[i])
	}
	return smallest
}

// sendFor sends messages for a time.
func (l *loadedInstance) sendFor(ctx context.Context, length time.Duration) error {
	for until := time.Now().Add(length); time.Now().Before(until) && ctx.Err() == nil; {
		l.sendOne(ctx)
	}
	return ctx.Err()
}

func (l *loadedInstance) measure() (all []float64, err error) {
	for _, s := range l.sizes() {
		value, err := s.read()
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", s.name, err)
		}
		all = append(all, value)
	}
	return all, nil
}

// walSize is the part of the write-ahead log that was written since it last started over. The file
// keeps the size of its longest time without: that grows by chance.
func (l *loadedInstance) walSize() (mb float64, err error) {
	if store.IsServer(l.instance.Database()) {
		return 0, nil // it cuts its log back itself
	}
	const pageSize = 4096
	var busy, pages, copied int
	err = l.db.QueryRow(`PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &pages, &copied) // which copies nothing
	return float64(pages*pageSize) / 1e6, err
}

// metric is a value of a daemon's /metrics, in a unit.
func (l *loadedInstance) metric(daemon, name string, unit float64) (float64, error) {
	res, err := http.Get(l.instance.URL(daemon) + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			return value / unit, err
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("%s has no %s", daemon, name))
}
