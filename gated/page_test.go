package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"arizuko/migrations"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "gated", Config{}, config.Base{})
}

var (
	pageStep = regexp.MustCompile(`^(\d+)\. \*\*(\w+)\.\*\*`)
	codeStep = regexp.MustCompile(`g\.(\w+)\(.*// (\d+)\. `)
	named    = regexp.MustCompile("`(gateway|decide|agents|queue|store|rows|prompt)\\.(\\w+)`")
	tableRef = regexp.MustCompile("`([a-z_]+)`")
	created  = regexp.MustCompile(`CREATE TABLE (\w+)`)
)

const architecture = "../docs/architecture.md"

// TestWalk_StepsAreThoseOfTheCode holds "The walk of one message" to the code: every
// function it names exists, every step names a function or a table, and the steps
// that pass strings together have the same numbers there.
func TestWalk_StepsAreThoseOfTheCode(t *testing.T) {
	steps := pageSteps(t)
	if len(steps) != 12 {
		t.Fatalf("the page has %d steps; is its form still understood?", len(steps))
	}
	declared := map[string]map[string]bool{
		"gateway": functions(t, "internal/deciding/gateway"), "decide": functions(t, "internal/deciding/decide"), "agents": functions(t, "internal/running/agents"),
		"queue": functions(t, "internal/running/queue"), "prompt": functions(t, "internal/shown/prompt"),
		"store": functions(t, "../pkg/store"), "rows": functions(t, "internal/rows"),
	}
	tables := tables(t)
	for i, step := range steps {
		functions, known := named.FindAllStringSubmatch(step.text, -1), 0
		for _, f := range functions {
			if !declared[f[1]][f[2]] {
				t.Errorf("step %d names %s.%s, which does not exist", i+1, f[1], f[2])
			}
		}
		for _, name := range tableRef.FindAllStringSubmatch(step.text, -1) {
			if tables[name[1]] {
				known++
			}
		}
		if len(functions)+known == 0 {
			t.Errorf("step %d (%s) names neither function nor table", i+1, step.title)
		}
	}
	source := storetest.Must(os.ReadFile("internal/deciding/gateway/pass.go"))(t)
	inCode := codeStep.FindAllStringSubmatch(string(source), -1)
	if len(inCode) != 5 {
		t.Fatalf("pass has %d numbered steps, the page says five", len(inCode))
	}
	for i, c := range inCode {
		step := steps[i+2]
		if c[2] != step.number || !strings.EqualFold(c[1], step.title) {
			t.Errorf("pass calls %s as step %s; the page has %s as step %s", c[1], c[2], step.title, step.number)
		}
	}
}

type step struct{ number, title, text string }

func pageSteps(t *testing.T) (steps []step) {
	t.Helper()
	_, walk, _ := strings.Cut(readPage(t, architecture), "## The walk of one message")
	section, _, _ := strings.Cut(walk, "\n#")
	for line := range strings.Lines(section) {
		if m := pageStep.FindStringSubmatch(line); m != nil {
			steps = append(steps, step{number: m[1], title: m[2]})
		}
		if n := len(steps); n > 0 {
			steps[n-1].text += line
		}
	}
	return steps
}

func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s (%v)", dir, err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed := storetest.Must(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !strings.HasSuffix(file, "_test.go") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

func tables(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files := storetest.Must(fs.Glob(migrations.FS, "*.up.sql"))(t)
	for _, file := range files {
		sql := storetest.Must(fs.ReadFile(migrations.FS, file))(t)
		for _, m := range created.FindAllStringSubmatch(string(sql), -1) {
			names[m[1]] = true
		}
	}
	return names
}

// TestPage_Reasons_Exist holds "What to do about a reason" to the codes of pkg/msg:
// each row names codes that exist, and no other row names them.
func TestPage_Reasons_Exist(t *testing.T) {
	_, section, found := strings.Cut(readPage(t, "README.md"), "## What to do about a reason")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("README.md has no table of reasons")
	}
	onPage := map[string]int{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, code := range tableRef.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) { // the first cell names the codes
			onPage[code[1]]++
		}
	}
	for _, r := range msg.Reasons {
		if n := onPage[string(r.Code)]; n > 1 {
			t.Errorf("%s is named %d times", r.Code, n)
		}
		delete(onPage, string(r.Code))
	}
	if len(onPage) > 0 {
		t.Errorf("no such codes: %v", onPage)
	}
}

var (
	diagram    = regexp.MustCompile("(?s)### (States of [^\n]+)\n.*?```mermaid\n(.*?)```")
	transition = regexp.MustCompile(`(?m)^  (\S+) --> (\w+)`)
)

// TestPage_Diagrams_HaveTheStatesOfTheCode holds the two diagrams to the
// dispositions and the states of turns.
func TestPage_Diagrams_HaveTheStatesOfTheCode(t *testing.T) {
	want := map[string][]string{
		"States of an inbound row": {"undecided", string(msg.Sticky), string(msg.Command), string(msg.Prefix), string(msg.Routed),
			string(msg.Observed), string(msg.Dropped), string(msg.Onboarding)},
		"States of a turn": {string(msg.TurnQueued), string(msg.TurnRunning), string(msg.TurnDone),
			string(msg.TurnFailed), string(msg.TurnCancelled)},
	}
	found := diagram.FindAllStringSubmatch(readPage(t, architecture), -1)
	if len(found) != len(want) {
		t.Fatalf("%d diagrams, want %d", len(found), len(want))
	}
	for _, d := range found {
		var states []string
		for _, step := range transition.FindAllStringSubmatch(d[2], -1) {
			for _, state := range step[1:] {
				if state != "[*]" && !slices.Contains(states, state) {
					states = append(states, state)
				}
			}
		}
		slices.Sort(states)
		slices.Sort(want[d[1]])
		if !slices.Equal(states, want[d[1]]) {
			t.Errorf("%s: the diagram has %v, the code %v", d[1], states, want[d[1]])
		}
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page := storetest.Must(os.ReadFile(path))(t)
	return string(page)
}

func TestProgram_Help_SaysWhatEachCommandDoes(t *testing.T) {
	var out bytes.Buffer
	if code := program().Run(t.Context(), []string{"--help"}, &out, &out); code != daemon.ExitOK {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	for name := range commands() {
		if summary := summaries()[name]; summary == "" || !strings.Contains(out.String(), summary) {
			t.Errorf("the help does not say what %s does:\n%s", name, &out)
		}
	}
}
