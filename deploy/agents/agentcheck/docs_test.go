package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/testkit/need"
)

// docs is the folder of the page for authors of agents.
const docs = "../../../docs"

func readDoc(t *testing.T, name string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// Not cleaned: Go's test cache notices changes of files below this module's folder only.
	text, err := os.ReadFile(here + "/" + docs + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPage_ShowsItsExample(t *testing.T) {
	t.Parallel()
	if !strings.Contains(readDoc(t, "agent-protocol.md"), "\n```python\n"+readDoc(t, "examples/notes.py")+"```\n") {
		t.Error("the page does not show examples/notes.py as it is")
	}
}

func TestPage_NamesEveryWordOfTheProtocol(t *testing.T) {
	t.Parallel()
	page := readDoc(t, "agent-protocol.md")
	words := []string{agentproto.FrameStart, agentproto.FrameEnd, agentproto.EventMark, `"type":"start"`, `"type":"message"`, `"type":"interrupt"`}
	for _, v := range []any{agentproto.Start{}, agentproto.MCP{}, agentproto.Message{}, agentproto.Frame{}, agentproto.Tool{}, agentproto.Plan{}, agentproto.Step{}, agentproto.Usage{}} {
		for i := range reflect.TypeOf(v).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
			words = append(words, name)
		}
	}
	for _, word := range words {
		if !strings.Contains(page, word) {
			t.Errorf("the page does not have %q", word)
		}
	}
	for _, limit := range []string{
		fmt.Sprintf("| a frame | %d MiB between its delimiters |", agentproto.MaxFrame>>20),
		fmt.Sprintf("| an event | %d MiB per line |", agentproto.MaxEvent>>20),
		fmt.Sprintf("| the frames of a turn | %d, with %d MiB of results in all; %d and %d KiB before the last one,",
			agentproto.MaxFrames, agentproto.MaxResults>>20, agentproto.MaxFrames-1, agentproto.MaxParts>>10),
		fmt.Sprintf("| a result | %d KiB,", agentproto.MaxResult>>10),
		fmt.Sprintf("| `newSessionId` | %d bytes;", agentproto.MaxSessionID),
		fmt.Sprintf("| `error` | %d KiB,", agentproto.MaxError>>10),
	} {
		if !strings.Contains(page, limit) {
			t.Errorf("the page does not say %q", limit)
		}
	}
}

func TestExamplesConform(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		needs, file, args string
		shows             []string
	}{
		{"python3", "examples/notes.py", "", []string{"a session is taken up again", "a session that is gone"}},
		{"jq", "examples/filter.sh", "wc -w", nil},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			need.Program(t, tt.needs, tt.needs)
			path, err := filepath.Abs(filepath.Join(docs, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			agent := Agent{Command: "exec " + quoted([]string{path}) + " " + tt.args, Env: []string{"PATH=" + os.Getenv("PATH")}}
			results, text, err := resultsOf(t, agent, quick)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, name := range append(tt.shows, "a first answer", "two turns piped in at once", "a big prompt", "odd text", "a line it does not know") {
				if results[name] != "ok" {
					t.Errorf("%s: %q", name, results[name])
				}
			}
		})
	}
}

func TestFilter_CommandFails_ReportsError(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs(filepath.Join(docs, "examples/filter.sh"))
	if err != nil {
		t.Fatal(err)
	}
	agent := Agent{Command: "exec " + quoted([]string{path, "sh", "-c", "cat >&2; exit 1"}), Env: []string{"PATH=" + os.Getenv("PATH")}}
	var out bytes.Buffer
	if err := agent.Conform(t.Context(), quick, &out); !errors.Is(err, errFailed) || !strings.Contains(out.String(), "turn 1 failed: sh failed") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
