package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/golden"
)

const (
	warmUp  = 5 // messages that start the agent
	counted = 40
)

// TestWork_PerMessage_DoesNotGrow counts what gated does for a message to an agent that is already running.
func TestWork_PerMessage_DoesNotGrow(t *testing.T) {
	bin, err := build("failpoints")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	dir := t.TempDir() // those of subtests have names that are too long for sockets
	for name, count := range map[string]func(*testing.T, *system){
		"statements": countStatements, "objects and wakes": countObjectsAndWakes,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{bin: bin, dir: dir}
			s, err := b.newSystem(t.Context())
			check(t, err)
			t.Cleanup(func() { check(t, b.stopSystems()) })
			count(t, s)
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// countStatements lists gated's statements: those that each of some messages has from its commit to its answer. Periodic
// ones are not among them. Another statement in the path of each message has to be worth it.
func countStatements(t *testing.T, s *system) {
	path, read := filepath.Join(s.instance.Dir, "statements"), 0
	s.instance.Env = append(s.instance.Env, "FAILPOINT_STATEMENTS="+path)
	check(t, s.serve(t.Context(), 1, 5))
	// since returns how often each statement was run since the last call.
	since := func() map[string]int {
		text, err := os.ReadFile(path)
		check(t, err)
		count := map[string]int{}
		for line := range strings.Lines(string(text[read:])) {
			if statement, found := strings.CutPrefix(strings.TrimSpace(line), "gated "); found {
				count[statement]++
			}
		}
		read = len(text)
		return count
	}
	var least map[string]int
	for i := range warmUp + counted {
		check(t, pause(t.Context()))
		since()
		_, err := s.adapter.ask(t.Context(), 0)
		check(t, err)
		switch count := since(); {
		case i < warmUp:
		case least == nil:
			least = count
		default:
			for statement := range least {
				least[statement] = min(least[statement], count[statement])
			}
		}
	}
	var lines []string
	total := 0
	for statement, n := range least {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%d× %.100s\n", n, statement))
			total += n
		}
	}
	slices.Sort(lines)
	golden.Compare(t, "testdata/statements.txt", fmt.Sprintf("%s%d in all\n", strings.Join(lines, ""), total))
}

// countObjectsAndWakes bounds what gated allocates, and how often its threads are woken, less what it does without
// messages in as much time. gated has one processor: with more, Go wakes idle threads to look for work, and the fewer
// the busier the machine is.
func countObjectsAndWakes(t *testing.T, s *system) {
	const maxObjects, maxWakes = 1000, 35
	s.instance.Env = append(s.instance.Env, "GOMAXPROCS=1")
	check(t, s.serve(t.Context(), 1, 5))
	objects := func() int {
		res, err := http.Get(s.instance.URL("gated") + "/metrics")
		check(t, err)
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		check(t, err)
		var n float64
		_, after, _ := strings.Cut(string(page), "\ngo_memstats_mallocs_total ")
		_, err = fmt.Sscan(after, &n)
		check(t, err)
		return int(n)
	}
	wakes := func() (total int) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.instance.Process("gated").PID()))
		check(t, err)
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			check(t, err)
			_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
			var n int
			_, err = fmt.Sscan(after, &n)
			check(t, err)
			total += n
		}
		return total
	}
	// perMessage is what a count grows by for a message, besides what it grows by in as much time without one.
	perMessage := func(count func() int) int {
		start, before := time.Now(), count()
		for range counted {
			_, err := s.adapter.ask(t.Context(), 0)
			check(t, errors.Join(err, pause(t.Context())))
		}
		took, after := time.Since(start), count()
		check(t, wait(t.Context(), took))
		return (after - before - (count() - after)) / counted
	}
	perMessage(objects) // starts the agent
	n := perMessage(objects)
	t.Logf("%d objects", n)
	if n > maxObjects {
		t.Errorf("%d objects, more than %d", n, maxObjects)
	}
	if n := perMessage(wakes); n > maxWakes {
		t.Errorf("threads woke %d times, more than %d", n, maxWakes)
	}
}
