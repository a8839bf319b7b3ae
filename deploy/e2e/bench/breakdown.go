package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	fp "arizuko/pkg/failpoint"
)

// step is a part of the way of a message, up to a point that a daemon reaches.
type step struct {
	name string
	end  fp.Point // "" for times that the bench takes itself
}

// steps are the steps from the commit of a message to the adapter's read of its answer.
func steps() []step {
	return []step{
		{"poke, wake, read the rows", fp.Read},
		{"question to routd, its decision", fp.Answering},
		{"answer back in gated", fp.Resolved},
		{"gate and layers, statements of the decision", fp.Decide.Before()},
		{"commit of the decision", fp.Decide.After()},
		{"dispatch, context, prompt", fp.Piping},
		{"pipe to the agent's stdin", ""},
		{"the agent's answer, frame read", fp.Framed},
		{"statements of the answer", fp.AnswerTurn.Before()},
		{"commit of the answer", fp.AnswerTurn.After()},
		{"poke, wake, read the answer", ""},
	}
}

// breakdown measures where the time of one message goes, with daemons that note when they reach which
// failpoint. Each note costs some microseconds, so the sum is more than the latency that is measured without them.
func (b *bench) breakdown(ctx context.Context) (figures []figure, err error) {
	bin, err := build("failpoints")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	traced := &bench{quick: b.quick, divisor: b.divisor, bin: bin, dir: b.dir}
	defer func() { err = errors.Join(err, traced.stopSystems()) }()

	s, err := traced.newSystem(ctx)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.instance.Dir, "trace")
	s.instance.Env = append(s.instance.Env, "FAILPOINT_TRACE="+path)
	if err := s.serve(ctx, 1, 5); err != nil {
		return nil, err
	}
	got, err := askAlternately(ctx, b.pick(1000, 20), s)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	passes, err := parseTrace(string(text))
	if err != nil {
		return nil, err
	}
	return breakdownFigures(got[0].all, passes)
}

// pass is when a daemon reached a point.
type pass struct {
	at    int64 // unix ns
	point fp.Point
}

// parseTrace parses the notes of daemons, and sorts them by time.
func parseTrace(text string) (passes []pass, err error) {
	for line := range strings.Lines(text) {
		var p pass
		if _, err := fmt.Sscan(line, &p.at, &p.point); err != nil {
			return nil, fmt.Errorf("trace %q: %w", line, err)
		}
		passes = append(passes, p)
	}
	slices.SortStableFunc(passes, func(a, b pass) int { return int(a.at - b.at) })
	return passes, nil
}

// breakdownFigures returns the median of each step. Messages that do not pass all points in order are
// left out, but most must.
func breakdownFigures(all []sample, passes []pass) (figures []figure, err error) {
	steps := steps()
	times := make([][]time.Duration, len(steps))
	complete := 0
	for _, s := range all {
		ends := endsOf(s, steps, passes)
		if ends == nil {
			continue
		}
		complete++
		last := s.commit
		for i, end := range ends {
			times[i] = append(times[i], time.Duration(end-last))
			last = end
		}
	}
	if 2*complete < len(all) {
		return nil, fmt.Errorf("only %d of %d messages passed all points in order", complete, len(all))
	}
	sum := 0.0
	for i := range steps {
		took := percentile(50, times[i])
		sum += took
		figures = append(figures, figure{name: fmt.Sprintf("step %d, p50", i+1), unit: "ms",
			measured: took})
	}
	return append(figures, figure{name: "sum of the steps", unit: "ms", measured: sum}), nil
}

// endsOf returns when each step of a message ended, nil if a step is missing.
func endsOf(s sample, steps []step, passes []pass) (ends []int64) {
	end := s.commit + s.toReply.Nanoseconds()
	next, _ := slices.BinarySearchFunc(passes, s.commit, func(p pass, at int64) int { return int(p.at - at) })
	for i, step := range steps {
		switch {
		case i == len(steps)-1:
			ends = append(ends, end)
		case step.end == "":
			ends = append(ends, s.commit+s.toAgent.Nanoseconds())
		default:
			for next < len(passes) && passes[next].at <= end && passes[next].point != step.end {
				next++
			}
			if next == len(passes) || passes[next].at > end {
				return nil
			}
			ends = append(ends, passes[next].at)
		}
	}
	if !slices.IsSorted(ends) {
		return nil
	}
	return ends
}
