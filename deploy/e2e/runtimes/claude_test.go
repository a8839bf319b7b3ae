package runtimes

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/need"
)

const (
	claudeImage = "arizuko-claude:1"
	wrongKey    = "sk-ant-wrong-0001-invalid-key"
)

// The real Claude Code calls a fake model. Every conversation runs in every runtime.
func TestRuntime_ClaudeCode_AllConversations(t *testing.T) {
	need.Verify(t)
	cli, agent := realCLI(t), build(t, "deploy/agents/claude")
	for name, newRuntime := range map[string]func(t *testing.T, cli, agent string) runtime{
		"process": inProcess, "bwrap": inBubblewrap, "docker": inDocker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runConversations(t, newRuntime(t, cli, agent))
		})
	}
}

// runtime is a way to run the agent.
type runtime struct {
	command  string // of the agent
	env      []string
	confined bool // it cannot read files of other groups
}

func inProcess(_ *testing.T, cli, agent string) runtime {
	return runtime{command: "exec '" + agent + "'", env: []string{"CLAUDE_COMMAND=" + cli, readable(cli, agent)}}
}

func inBubblewrap(_ *testing.T, cli, agent string) runtime {
	return runtime{command: "exec '" + agent + "'", confined: true, env: []string{
		"CLAUDE_COMMAND=" + cli, "AGENT_SANDBOX=bwrap", "AGENT_NETWORK=host", // where the fake of its API listens
		readable(cli, agent),
	}}
}

func readable(cli, agent string) string {
	return "AGENT_READABLE=" + filepath.Dir(agent) + "," + filepath.Dir(cli)
}

func inDocker(t *testing.T, cli, agent string) runtime {
	e := docker.Start(t)
	files := libraries(t, cli)
	maps.Copy(files, libraries(t, "/bin/bash"))
	maps.Copy(files, libraries(t, "/bin/cat"))
	maps.Copy(files, libraries(t, "/bin/sleep"))
	maps.Copy(files, map[string]string{"agent": agent, "cli": cli, "bin/bash": "/bin/bash", "bin/sh": "/bin/bash", "bin/cat": "/bin/cat", "bin/sleep": "/bin/sleep"})
	e.Import(t, claudeImage, files)
	return runtime{command: "exec /agent", confined: true, env: append(e.Environ(), "AGENT_RUNTIME=docker", "AGENT_IMAGE="+claudeImage,
		"AGENT_NETWORK=host", "CLAUDE_COMMAND=/cli", "SHELL=/bin/bash")}
}

var library = regexp.MustCompile(`(/\S+) \(0x`)

// libraries are the shared libraries of a program, as files of an image.
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

// realCLI is the Claude Code of the version that the agent claude pins, or $CLAUDE_CLI.
func realCLI(t *testing.T) string {
	t.Helper()
	path := os.Getenv("CLAUDE_CLI")
	if path == "" {
		path = filepath.Join("..", "..", "agents", "claude", "node_modules", ".bin", "claude")
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

// runConversations runs all conversations in one instance, each with its own chat and group, in
// sequence: some of them kill or stop gated.
func runConversations(t *testing.T, r runtime) {
	m, env := model(t)
	f := harness.Start(t, programs, harness.Options{Agent: r.command, Env: append(append(env, r.env...), "TURN_ATTEMPTS=2")})
	all := conversations
	if r.confined {
		all = append([]conversation{{"files of others", "confined", "", confinedFiles}}, all...)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			f.AddGroups(c.folder)
			if c.env != "" {
				f.Exec(`UPDATE registered_groups SET config = json_object('agent', json_object('command', ?)) WHERE folder = ?`,
					c.env+" "+r.command, c.folder)
			}
			jid := "telegram:" + c.folder
			f.AddRoute("chat_jid="+jid, c.folder)
			c.run(&chat{Fixture: f, t: t, jid: jid, dir: filepath.Join(f.Data, "groups", msg.DirName(c.folder)), model: m})
		})
	}
	for _, key := range []string{m.Key(), wrongKey} {
		wantNoSecret(t, f, key)
	}
}

// model starts a fake model and returns the environment of agents that call it.
func model(t *testing.T) (*anthropic.Server, []string) {
	t.Helper()
	m := anthropic.New(anthropic.Options{})
	m.SetModel(inTurn())
	url, err := m.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, []string{
		"ANTHROPIC_API_KEY=" + m.Key(), "WRONG_KEY=" + wrongKey, "ANTHROPIC_BASE_URL=" + url, "CLAUDE_ALLOWED_TOOLS=Bash",
		"AGENT_ENV=ANTHROPIC_API_KEY,WRONG_KEY,ANTHROPIC_BASE_URL,CLAUDE_ALLOWED_TOOLS,CLAUDE_COMMAND,SHELL",
	}
}

// inTurn is a model that obeys one order per call of those joined by "; ", and then repeats the last.
func inTurn() func(anthropic.Request) anthropic.Reply {
	var mu sync.Mutex
	asked := map[string]int{}
	return func(r anthropic.Request) anthropic.Reply {
		orders := r.Commands()
		if len(orders) == 0 || !strings.Contains(orders[len(orders)-1], "; ") {
			return anthropic.FollowCommand(r)
		}
		all := orders[len(orders)-1]
		mu.Lock()
		n := asked[all]
		asked[all]++
		mu.Unlock()
		steps := strings.Split(all, "; ")
		step := anthropic.Content{{Type: "text", Text: steps[min(n, len(steps)-1)]}}
		return anthropic.FollowCommand(anthropic.Request{Messages: []anthropic.Message{{Role: "user", Content: step}}})
	}
}

// wantNoSecret fails the test if a file of the instance, outside of the groups' folders, contains a
// secret.
func wantNoSecret(t *testing.T, f *harness.Fixture, secret string) {
	t.Helper()
	seen := false // whether rows can be found in this way
	err := filepath.WalkDir(f.Data, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(f.Data, "groups"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s contains %s", path, secret)
		}
		seen = seen || bytes.Contains(content, []byte("say hello"))
		return err
	})
	if err != nil || !seen {
		t.Errorf("search for secrets: %v, rows found: %v", err, seen)
	}
	if strings.Contains(f.Log(harness.Gated), secret) {
		t.Errorf("the log of gated contains %s", secret)
	}
}

// chat is a chat with its own group.
type chat struct {
	*harness.Fixture
	t     *testing.T
	jid   string
	dir   string // of the group
	model *anthropic.Server
}

// say writes a message in the chat.
func (c *chat) say(text string) (row int64) {
	c.t.Helper()
	return c.Say(c.jid, text)
}

// wantAnswer writes a message and fails the test unless it has that answer.
func (c *chat) wantAnswer(text, want string) {
	c.t.Helper()
	if got := c.Answer(c.say(text)); got != want {
		c.t.Errorf("answer to %q: %q, want %q", text, got, want)
	}
}

// ask writes a message and waits until the model gets it.
func (c *chat) ask(text string) (row int64) {
	c.t.Helper()
	row = c.say(text)
	c.waitCall(text, func(call anthropic.Call) bool { return call.Accepted })
	return row
}

// waitCall waits for a call of the model with an order.
func (c *chat) waitCall(order string, like func(anthropic.Call) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if _, err := c.model.Wait(ctx, func(call anthropic.Call) bool { return call.Command == order && like(call) }); err != nil {
		c.t.Fatalf("call of the model with %q: %v", order, err)
	}
}

// outbound lists the texts of all outbound rows of the chat.
func (c *chat) outbound() (texts []string) {
	c.t.Helper()
	for _, m := range c.Outbound(c.jid) {
		texts = append(texts, m.Content)
	}
	return texts
}

// cli is the process id of the Claude Code in the group's folder, in any namespace.
func (c *chat) cli() (pid int) {
	c.t.Helper()
	dir, err := os.Stat(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range processes {
		args, _ := os.ReadFile(filepath.Join(path, "cmdline")) // it may have ended
		cwd, err := os.Stat(filepath.Join(path, "cwd"))
		if err == nil && os.SameFile(cwd, dir) && bytes.Contains(args, []byte("\x00--output-format=stream-json\x00")) {
			return number(c.t, filepath.Base(path))
		}
	}
	c.t.Fatal("no Claude Code runs")
	return 0
}
