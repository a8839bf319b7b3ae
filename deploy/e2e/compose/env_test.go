package compose

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setting is a variable as a page shows it.
type setting struct{ value, meaning string }

var (
	exampleLine = regexp.MustCompile(`^#([A-Z][A-Z0-9_]*)=(.*)$`)
	fullRow     = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]*)`( \\(or `\\w+`\\))? \\| (.*?) \\| (.*) \\|$")
	reference   = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)(?::[-?]([^}]*))?\}`)
)

// example reads deploy/env.example. Every setting is commented out, with its meaning in the line before.
func example(t *testing.T) map[string]setting {
	t.Helper()
	all, last := map[string]setting{}, ""
	for line := range strings.Lines(readFile(t, "deploy/env.example")) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			t.Errorf("%q is set in the example", line)
		}
		m := exampleLine.FindStringSubmatch(line)
		if m == nil {
			last = line
			continue
		}
		if _, twice := all[m[1]]; twice {
			t.Errorf("%s is there twice", m[1])
		}
		if file, ok := strings.CutSuffix(m[1], "_FILE"); ok && all[file].meaning != "" {
			all[m[1]] = setting{m[2], all[file].meaning}
			continue
		}
		meaning, found := strings.CutPrefix(last, "# "+m[1]+": ")
		if !found {
			t.Errorf("%s: the line before is %q, not its meaning", m[1], last)
		}
		all[m[1]] = setting{m[2], meaning}
	}
	return all
}

// settingsOf are the tables of a daemon's variables on the page that tests keep equal to the code.
func settingsOf(t *testing.T, daemon string) (tables string) {
	t.Helper()
	page := readFile(t, "docs/reference/environment.md")
	sections := []string{"base", daemon}
	if slices.Contains([]string{"teled", "discd", "slakd"}, daemon) {
		sections = append(sections, "adapters")
	}
	for _, section := range sections {
		_, table, _ := strings.Cut(page, "<!-- "+section+":start -->")
		table, _, found := strings.Cut(table, "<!-- "+section+":end -->")
		if !found {
			t.Fatalf("the page has no table of %s", section)
		}
		tables += table
	}
	return tables
}

// documented are the variables of the daemons, as the reference has them.
func documented(t *testing.T) map[string][]setting {
	t.Helper()
	all := map[string][]setting{}
	for _, daemon := range daemons {
		for _, m := range fullRow.FindAllStringSubmatch(settingsOf(t, daemon), -1) {
			s := setting{strings.TrimPrefix(strings.Trim(m[3], "`"), "required"), strings.ReplaceAll(m[4], `\|`, "|")}
			all[m[1]] = append(all[m[1]], s)
			if m[2] != "" {
				all[m[1]+"_FILE"] = append(all[m[1]+"_FILE"], s)
			}
		}
	}
	return all
}

// ofAgentsFile are defaults that deploy/compose/agents.yml changes: containers of agents have a network with gated.
var ofAgentsFile = map[string]string{"AGENT_NETWORK": "arizuko-agents", "AGENT_MCP_URL": "http://gated:8084/mcp",
	"AGENT_PROXY_URL": "http://gated:8085"}

// ofCompose are the variables that the files of Compose read, with their default there, but for those of ofAgentsFile.
func ofCompose(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"COMPOSE_PROFILES": "", "COMPOSE_FILE": baseFile}
	for _, file := range slices.Concat([]string{baseFile}, overrides) {
		for _, m := range reference.FindAllStringSubmatch(readFile(t, file), -1) {
			if strings.Contains(m[0], ":?") {
				m[2] = "" // a message, not a default
			}
			if value, changed := ofAgentsFile[m[1]]; changed && file == overrides[0] {
				if m[2] != value {
					t.Errorf("%s: %s is %q by default, want %q", file, m[1], m[2], value)
				}
				continue
			}
			if before, ok := all[m[1]]; ok && before != m[2] {
				t.Errorf("%s: %s is %q by default, and %q elsewhere", file, m[1], m[2], before)
			}
			all[m[1]] = m[2]
		}
	}
	return all
}

func TestEnvExample_HasEveryVariable_WithDefaultAndMeaning(t *testing.T) {
	t.Parallel()
	listed, ofDaemons, ofFiles := example(t), documented(t), ofCompose(t)
	for name, settings := range ofDaemons {
		if !slices.Contains(settings, listed[name]) {
			t.Errorf("%s: the example has %q, the pages %q", name, listed[name], settings)
		}
	}
	for name, value := range ofFiles {
		if got, ok := listed[name]; !ok || ofDaemons[name] == nil && got.value != value {
			t.Errorf("%s is %q in the example, %q by default in the files of Compose", name, got.value, value)
		}
	}
	for name := range listed {
		if _, used := ofFiles[name]; !used && ofDaemons[name] == nil {
			t.Errorf("%s: no program and no file reads it", name)
		}
	}
}

// The files of Compose do not change a default, apart from those that differ in containers.
func TestFile_Defaults_AreThoseOfTheDaemons(t *testing.T) {
	t.Parallel()
	differ := map[string]string{"ARIZUKO_DATA": dataPath, "DASH_PUBLIC_URL": "http://127.0.0.1:8083", "AGENT_RUNTIME": "process", "AGENT_IMAGE": "arizuko-demo"}
	ofDaemons := documented(t)
	for name, value := range ofCompose(t) {
		if ofDaemons[name] != nil && value != differ[name] {
			t.Errorf("%s is %q by default, want %q", name, value, differ[name])
		}
	}
}

// Every file in deploy/compose is one that the tests know.
func TestOverrides_AreAll(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(repository(t) + "/deploy/compose/*.yml")
	if err != nil || len(found) != len(overrides) {
		t.Errorf("%q, %v", found, err)
	}
}
