package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/golden"
)

// TestStatements_PerMessage_DoNotGrow lists gated's statements for a message to an agent that is already running:
// those that each of some messages has from its commit to its answer. Periodic statements are not among them. Another
// statement in the path of each message has to be worth it.
func TestStatements_PerMessage_DoNotGrow(t *testing.T) {
	const messages = 40
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bin, err := build("failpoints")
	check(err)
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	b := &bench{bin: bin, dir: t.TempDir()}
	defer func() { check(b.stopSystems()) }()
	s, err := b.newSystem(t.Context())
	check(err)
	path, read := filepath.Join(s.instance.Dir, "statements"), 0
	s.instance.Env = append(s.instance.Env, "FAILPOINT_STATEMENTS="+path)
	check(s.serve(t.Context(), 1, 5))
	// since returns how often each statement was run since the last call.
	since := func() map[string]int {
		text, err := os.ReadFile(path)
		check(err)
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
	for i := range 5 + messages { // the first ones start the agent
		check(pause(t.Context()))
		since()
		_, err := s.adapter.ask(t.Context(), 0)
		check(err)
		switch count := since(); {
		case i < 5:
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
