package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/golden"
)

// TestStatements_PerMessage_DoNotGrow counts the statements of gated and routd for a message to an agent that is
// already running. Another statement in the path of each message has to be worth it.
func TestStatements_PerMessage_DoNotGrow(t *testing.T) {
	const messages = 40
	bin, err := build("failpoints")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	b := &bench{bin: bin, dir: t.TempDir()}
	defer func() {
		if err := b.stopSystems(); err != nil {
			t.Error(err)
		}
	}()
	s, err := b.newSystem(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.instance.Dir, "statements")
	s.instance.Env = append(s.instance.Env, "FAILPOINT_STATEMENTS="+path)
	if err := s.serve(t.Context(), 1, 5); err != nil {
		t.Fatal(err)
	}
	ask := func(n int) map[string]int {
		t.Helper()
		for range n {
			if _, err := s.adapter.ask(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if err := pause(t.Context()); err != nil { // until everything that follows an answer is done
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for line := range strings.Lines(string(text)) {
			count[strings.TrimSpace(line)]++
		}
		return count
	}
	before := ask(5)
	var lines []string
	total := map[string]int{}
	for statement, n := range ask(messages) {
		// periodic statements are rarer than messages, and some pokes come together
		if n = (n - before[statement] + messages/2) / messages; n > 0 {
			daemon, text, _ := strings.Cut(statement, " ")
			total[daemon] += n
			lines = append(lines, fmt.Sprintf("%s %d× %.100s\n", daemon, n, text))
		}
	}
	slices.SortFunc(lines, cmp.Compare[string])
	for _, daemon := range slices.Sorted(maps.Keys(total)) {
		lines = append(lines, fmt.Sprintf("%s: %d\n", daemon, total[daemon]))
	}
	golden.Compare(t, "testdata/statements.txt", strings.Join(lines, ""))
}
