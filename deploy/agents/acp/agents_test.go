package main

import (
	"cmp"
	"os"
	"strings"
	"testing"
)

// realAgent is an agent that the tests with the tag realagents run, and docs/bring-your-agent.md names.
type realAgent struct {
	name    string
	command string // as the page has it
	key     string // the variable of its key
	pkg     string // of npm
	pinned  string // its package for this machine, if that is another one
	image   string // the target of ../Dockerfile, "" for none
}

var realAgents = []realAgent{
	{"Claude", "claude-agent-acp", "ANTHROPIC_API_KEY", "@agentclientprotocol/claude-agent-acp", "", ""},
	{"Codex", "codex-acp", "OPENAI_API_KEY", "@zed-industries/codex-acp", "", "codex"},
	{"OpenCode", "opencode acp", "OPENAI_API_KEY", "opencode-ai", "opencode-linux-x64", "opencode"},
	{"Gemini CLI", "gemini --acp", "GEMINI_API_KEY", "@google/gemini-cli", "", "gemini"},
}

// Each line of the page is one that the tests run, with the version that they run.
func TestPage_Lines_AreThoseThatTheTestsRun(t *testing.T) {
	page, err := os.ReadFile("../../../docs/bring-your-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	versions, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "bin/acp ") && strings.HasPrefix(line, "| ") {
			lines++
		}
	}
	if lines != len(realAgents) {
		t.Errorf("the page has %d lines, the tests run %d", lines, len(realAgents))
	}
	for _, a := range realAgents {
		version, found := a.version(string(versions))
		want := "| " + a.name + " | `" + a.pkg + "` " + version + " | `exec $PWD/bin/acp " + a.command + "` | `" + a.key + "` |"
		if !found || !strings.Contains(string(page), want) {
			t.Errorf("the page has no line %q", want)
		}
	}
}

// version is the one that package.json pins.
func (a realAgent) version(versions string) (version string, found bool) {
	_, version, found = strings.Cut(versions, `"`+cmp.Or(a.pinned, a.pkg)+`": "`)
	version, _, _ = strings.Cut(version, `"`)
	return version, found
}

// Each image has the version that the tests run, and runs its line. The page says which image it is.
func TestDockerfile_Images_AreThoseThatTheTestsRun(t *testing.T) {
	var files [3]string
	for i, name := range []string{"../Dockerfile", "package.json", "../../../docs/bring-your-agent.md"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(content)
	}
	for _, a := range realAgents {
		if a.image == "" {
			continue
		}
		version, _ := a.version(files[1])
		_, target, found := strings.Cut(files[0], "FROM acp AS "+a.image+"\n")
		target, _, _ = strings.Cut(target, "\nFROM ")
		entry := `ENTRYPOINT ["/agent", "` + strings.ReplaceAll(a.command, " ", `", "`) + `"]`
		if !found || !strings.Contains(target, " "+a.pkg+"@"+version+" ") || !strings.Contains(target, entry) {
			t.Errorf("the target %s does not have %s %s and %s:\n%s", a.image, a.pkg, version, entry, target)
		}
		if !strings.Contains(files[2], "`"+a.image+"`") {
			t.Errorf("the page does not name the target %s", a.image)
		}
	}
}
