package engine

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"arizuko/deploy/suite"
	"arizuko/pkg/enginetest"
	"arizuko/pkg/fakeplatform/anthropic"
)

const claudeImage = "arizuko-claude:1"

// realCLI is the program of the Claude Code that the agent claude pins, or $CLAUDE_CLI.
func realCLI(t *testing.T) string {
	t.Helper()
	path := os.Getenv("CLAUDE_CLI")
	if path == "" {
		path = filepath.Join("..", "agents", "claude", "node_modules", ".bin", "claude")
	}
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/claude`, or name one in CLAUDE_CLI", err)
	}
	return path
}

// model starts a stand-in for the model and returns the environment that leads agents to it.
func model(t *testing.T) []string {
	t.Helper()
	m := anthropic.New(anthropic.Options{})
	url, err := m.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return []string{
		"ANTHROPIC_API_KEY=" + m.Key(), "ANTHROPIC_BASE_URL=" + url, "CLAUDE_ALLOWED_TOOLS=Bash",
		"AGENT_ENV=ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,CLAUDE_ALLOWED_TOOLS,CLAUDE_COMMAND,SHELL",
	}
}

func TestClaudeInBubblewrap(t *testing.T) {
	cli, agent := realCLI(t), build(t, "claude")
	env := append(model(t), "AGENT_SANDBOX=bwrap", "AGENT_READABLE="+filepath.Dir(agent)+","+filepath.Dir(cli), "CLAUDE_COMMAND="+cli)
	conversation(t, suite.Options{Agent: "exec '" + agent + "'", Env: env})
}

func TestClaudeInDocker(t *testing.T) {
	cli := realCLI(t)
	e := enginetest.Start(t)
	files := libraries(t, cli)
	maps.Copy(files, libraries(t, "/bin/bash"))
	maps.Copy(files, libraries(t, "/bin/cat"))
	maps.Copy(files, map[string]string{"agent": build(t, "claude"), "cli": cli, "bin/bash": "/bin/bash", "bin/sh": "/bin/bash", "bin/cat": "/bin/cat"})
	e.Import(t, claudeImage, files)
	env := append(append(model(t), e.Environ()...), "AGENT_RUNTIME=docker", "AGENT_IMAGE="+claudeImage, "AGENT_NETWORK=host",
		"CLAUDE_COMMAND=/cli", "SHELL=/bin/bash")
	conversation(t, suite.Options{Env: env})
}

var library = regexp.MustCompile(`(/\S+) \(0x`)

// libraries are the shared ones that a program loads, as files of an image.
func libraries(t *testing.T, program string) map[string]string {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		files[strings.TrimPrefix(m[1], "/")] = m[1]
	}
	return files
}

// conversation has the model answer, look for what is not the group's, and go on after gated died.
func conversation(t *testing.T, o suite.Options) {
	s := suite.Start(t, o)
	s.Group("main")
	s.Route("", "main")
	if got := s.Answer(s.Say("telegram:5", "say hello")); got != "hello" {
		t.Errorf("it said %q", got)
	}
	secret, err := os.ReadFile(filepath.Join(s.Data, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"secret", "arizuko.db"} {
		got := s.Answer(s.Say("telegram:5", "tool Bash cat "+filepath.Join(s.Data, file)))
		if strings.Contains(got, strings.TrimSpace(string(secret))) || !strings.Contains(got, "No such file") {
			t.Errorf("%s: it said %q", file, got)
		}
	}
	s.Kill(suite.Gated)
	s.Restart(suite.Gated)
	if got := s.Answer(s.Say("telegram:5", "say again")); got != "again" { // without a line on a lost session
		t.Errorf("after gated's death it said %q", got)
	}
}
