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
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/fakes/anthropic"
)

const (
	claudeImage = "arizuko-claude:1"
	wrongKey    = "sk-ant-wrong-0001-key-of-nobody"
)

// TestClaude has the real Claude Code, in front of a fake of the API that it calls, go through
// every conversation in every runtime.
func TestClaude(t *testing.T) {
	cli, agent := realCLI(t), build(t, "claude")
	for name, way := range map[string]func(t *testing.T, cli, agent string) runtime{
		"process": inProcess, "bwrap": inBubblewrap, "docker": inDocker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			converse(t, way(t, cli, agent))
		})
	}
}

// runtime is a way to run the agent.
type runtime struct {
	command  string // the agent's
	env      []string
	confined bool // it cannot read what is not its group's
}

func inProcess(_ *testing.T, cli, agent string) runtime {
	return runtime{command: "exec '" + agent + "'", env: []string{"CLAUDE_COMMAND=" + cli}}
}

func inBubblewrap(_ *testing.T, cli, agent string) runtime {
	return runtime{command: "exec '" + agent + "'", confined: true, env: []string{
		"CLAUDE_COMMAND=" + cli, "AGENT_SANDBOX=bwrap", "AGENT_READABLE=" + filepath.Dir(agent) + "," + filepath.Dir(cli),
	}}
}

func inDocker(t *testing.T, cli, agent string) runtime {
	e := docker.Start(t)
	files := libraries(t, cli)
	maps.Copy(files, libraries(t, "/bin/bash"))
	maps.Copy(files, libraries(t, "/bin/cat"))
	maps.Copy(files, map[string]string{"agent": agent, "cli": cli, "bin/bash": "/bin/bash", "bin/sh": "/bin/bash", "bin/cat": "/bin/cat"})
	e.Import(t, claudeImage, files)
	return runtime{command: "exec /agent", confined: true, env: append(e.Environ(), "AGENT_RUNTIME=docker", "AGENT_IMAGE="+claudeImage,
		"AGENT_NETWORK=host", "CLAUDE_COMMAND=/cli", "SHELL=/bin/bash")}
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

// realCLI is the program of the Claude Code that the agent claude pins, or $CLAUDE_CLI.
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

// converse has one instance go through all conversations, each with a chat and a group of its own,
// one after the other: some of them end gated.
func converse(t *testing.T, r runtime) {
	m, env := model(t)
	s := harness.Start(t, programs, harness.Options{Agent: r.command, Env: append(append(env, r.env...), "TURN_ATTEMPTS=2")})
	all := conversations
	if r.confined {
		all = append([]conversation{{"looking around", "around", "", lookingAround}}, all...)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			s.AddGroups(c.folder)
			if c.env != "" {
				s.Exec(`UPDATE registered_groups SET config = json_object('agent', json_object('command', ?)) WHERE folder = ?`,
					c.env+" "+r.command, c.folder)
			}
			chat := "telegram:" + c.folder
			s.AddRoute("chat_jid="+chat, c.folder)
			c.run(&talk{Fixture: s, t: t, chat: chat, dir: filepath.Join(s.Data, "groups", c.folder), model: m})
		})
	}
	for _, key := range []string{m.Key(), wrongKey} {
		isNowhere(t, s, key)
	}
}

// model starts a stand-in for the model and returns the environment that leads agents to it.
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

// inTurn is a model that obeys, of orders with "; " between, one each time it is asked, and the
// last one from then on.
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

// isNowhere fails if anything of the instance holds a secret, the groups' own folders left out.
func isNowhere(t *testing.T, s *harness.Fixture, secret string) {
	t.Helper()
	seen := false // that rows can be found in this way
	err := filepath.WalkDir(s.Data, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(s.Data, "groups"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s holds %s", path, secret)
		}
		seen = seen || bytes.Contains(content, []byte("say hello"))
		return err
	})
	if err != nil || !seen {
		t.Errorf("looking for secrets: %v, rows seen: %v", err, seen)
	}
	if strings.Contains(s.Log(harness.Gated), secret) {
		t.Errorf("gated's log holds %s", secret)
	}
}

// talk is one conversation in a chat and a group of its own.
type talk struct {
	*harness.Fixture
	t     *testing.T
	chat  string
	dir   string // the group's
	model *anthropic.Server
}

// say has somebody write in the chat.
func (c *talk) say(text string) (row int64) {
	c.t.Helper()
	return c.Say(c.chat, text)
}

// answers fails unless a message is answered like that.
func (c *talk) answers(text, want string) {
	c.t.Helper()
	if got := c.Answer(c.say(text)); got != want {
		c.t.Errorf("%q is answered %q, not %q", text, got, want)
	}
}

// asks writes a message and waits until the model thinks about it.
func (c *talk) asks(text string) (row int64) {
	c.t.Helper()
	row = c.say(text)
	c.asked(text, func(call anthropic.Call) bool { return call.Accepted })
	return row
}

// asked waits for a call of the model's with an order.
func (c *talk) asked(order string, like func(anthropic.Call) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if _, err := c.model.Wait(ctx, func(call anthropic.Call) bool { return call.Command == order && like(call) }); err != nil {
		c.t.Fatalf("the model and %q: %v", order, err)
	}
}

// said is everything that came to the chat.
func (c *talk) said() (texts []string) {
	c.t.Helper()
	for _, m := range c.Outbound(c.chat) {
		texts = append(texts, m.Content)
	}
	return texts
}

// cli is the Claude Code that works in the group's folder, under whatever name that has there.
func (c *talk) cli() (pid int) {
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
		args, _ := os.ReadFile(filepath.Join(path, "cmdline")) // it may be gone
		cwd, err := os.Stat(filepath.Join(path, "cwd"))
		if err == nil && os.SameFile(cwd, dir) && bytes.Contains(args, []byte("\x00--output-format=stream-json\x00")) {
			return number(c.t, filepath.Base(path))
		}
	}
	c.t.Fatal("no Claude Code is at work")
	return 0
}
