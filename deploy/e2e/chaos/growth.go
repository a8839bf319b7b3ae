package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// size is what must not grow for as long as the load stays the same.
type size struct {
	name, unit string
	slack      float64 // so much is noise: what is not given back yet, and six agents more, each of which takes four files
	read       func() (float64, error)
}

func (t *trial) sizes() []size {
	all := []size{{"write-ahead log", "MB", 2, t.writeAheadLog}}
	for _, daemon := range daemons {
		all = append(all,
			size{daemon + " memory", "MB", 4, func() (float64, error) { return t.memory(daemon) }},
			size{daemon + " files", "", 24, func() (float64, error) { return t.files(daemon) }},
			size{daemon + " goroutines", "", 24, func() (float64, error) { return t.goroutines(daemon) }},
		)
	}
	return all
}

const (
	// looks is how often sizes are looked at in the calm.
	looks = 12
	// mostGrowth is how much larger than in the first third of the looks a size may be in the
	// last, beyond the slack.
	mostGrowth = 1.1
)

// calm has people write while no daemon is harmed, and says what has grown: the least of the
// last looks is held against the least of the first ones, since what is garbage comes and goes.
func (t *trial) calm(ctx context.Context, lasts time.Duration, out io.Writer) (growth, err error) {
	warm := min(warmUp, lasts/2)
	if err := t.chatter(ctx, warm); err != nil {
		return nil, err
	}
	written := len(t.crowd.all)
	var seen [][]float64
	for range looks {
		now, err := t.measure()
		if err == nil {
			err = t.chatter(ctx, (lasts-warm)/looks)
		}
		if err != nil {
			return nil, err
		}
		seen = append(seen, now)
	}
	fmt.Fprintf(out, "over %d messages:\n", len(t.crowd.all)-written)
	var errs []error
	for i, z := range t.sizes() {
		was, is := least(seen[:looks/3], i), least(seen[looks-looks/3:], i)
		fmt.Fprintf(out, "%-16s %6.1f → %6.1f %s\n", z.name, was, is, z.unit)
		if is > was*mostGrowth+z.slack {
			errs = append(errs, fmt.Errorf("%s grows: %.1f → %.1f %s", z.name, was, is, z.unit))
		}
	}
	return errors.Join(errs...), nil
}

func least(looks [][]float64, i int) float64 {
	least := math.Inf(1)
	for _, look := range looks {
		least = min(least, look[i])
	}
	return least
}

// chatter has people write for a time.
func (t *trial) chatter(ctx context.Context, lasts time.Duration) error {
	for until := time.Now().Add(lasts); time.Now().Before(until) && ctx.Err() == nil; {
		t.chat(ctx)
	}
	return ctx.Err()
}

func (t *trial) measure() (all []float64, err error) {
	for _, z := range t.sizes() {
		value, err := z.read()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", z.name, err)
		}
		all = append(all, value)
	}
	return all, nil
}

func (t *trial) writeAheadLog() (mb float64, err error) {
	info, err := os.Stat(t.Database() + "-wal")
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / 1e6, nil
}

func (t *trial) proc(daemon, file string) string {
	return filepath.Join("/proc", strconv.Itoa(t.Process(daemon).PID()), file)
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

func (t *trial) memory(daemon string) (mb float64, err error) {
	status, err := os.ReadFile(t.proc(daemon, "status"))
	if err != nil {
		return 0, err
	}
	kb, err := number(resident, status)
	return kb / 1000, err
}

func (t *trial) files(daemon string) (float64, error) {
	open, err := os.ReadDir(t.proc(daemon, "fd"))
	return float64(len(open)), err
}

var goroutineCount = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

func (t *trial) goroutines(daemon string) (float64, error) {
	res, err := http.Get(t.URL(daemon) + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	return number(goroutineCount, text)
}

func number(pattern *regexp.Regexp, text []byte) (float64, error) {
	match := pattern.FindSubmatch(text)
	if match == nil {
		return math.NaN(), fmt.Errorf("nothing matches %s", pattern)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}
