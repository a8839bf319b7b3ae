//go:build realagents

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/fakes/llm"
	"arizuko/pkg/testkit/gobuild"
)

// These tests run the real agents, in the versions that package.json pins, with fake models: `make acp`.

const mcpToken = "token-of-the-tools"

// real is a group with a real agent, and what differs between them.
type real struct {
	*group
	agent  realAgent
	home   string
	base   string          // of the fake model
	bodies func() []string // of the requests that the model has got
	bash   string          // the order that makes its model run a command
	folds  bool
	cost   bool
	slow   bool // to store sessions
	mode   string
}

// program is the path of an installed program.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
	if name == "opencode" { // its package for all machines names some that not every registry has
		path, err = filepath.Abs("node_modules/opencode-linux-x64/bin/opencode")
	}
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/acp`", err)
	}
	return path
}

// bring makes a group for a real agent, with its fake model.
func bring(t *testing.T, a realAgent) *real {
	t.Helper()
	home := t.TempDir()
	words := strings.Fields(a.command)
	g := &group{t: t, folder: t.TempDir(), command: append([]string{program(t, words[0])}, words[1:]...), maxWait: 5 * time.Minute, environ: []string{
		"ACP_START_TIMEOUT=4m", // on a busy machine OpenCode takes more than a minute
		"PATH=" + filepath.Dir(program(t, "node")) + ":" + os.Getenv("PATH"), "HOME=" + home,
	}}
	r := &real{group: g, agent: a, home: home}
	if a.name == "Claude" {
		model := anthropic.New(anthropic.Options{})
		base, err := model.Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = model.Close() })
		g.environ = append(g.environ, "ANTHROPIC_API_KEY="+model.Key(), "ANTHROPIC_BASE_URL="+base, "CLAUDE_CONFIG_DIR="+home+"/.claude",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_MAX_RETRIES=1")
		r.bodies = func() (all []string) {
			for _, c := range model.MessageCalls() {
				all = append(all, string(c.Body))
			}
			return all
		}
		r.bash, r.folds, r.cost = "tool Bash touch made; echo done", true, true
		return r
	}
	model := llm.New()
	base, err := model.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	r.base, r.bodies = base, func() (all []string) {
		for _, c := range model.Calls() {
			all = append(all, string(c.Body))
		}
		return all
	}
	switch a.name {
	case "Codex":
		g.environ = append(g.environ, "OPENAI_API_KEY="+llm.Key)
		g.command = append(g.command, "-c", fmt.Sprintf(`model_providers.fake={name="fake",base_url="%s/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`, base),
			"-c", `model_provider="fake"`)
		r.bash, r.mode = `tool shell_command {"command":"touch made; echo done","sandbox_permissions":"require_escalated","justification":"May I?"}`, "read-only"
	case "OpenCode":
		config := fmt.Sprintf(`{"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","name":"fake","options":{"baseURL":"%s/v1","apiKey":"%s"},`+
			`"models":{"m":{"name":"m","attachment":true,"modalities":{"input":["text","image"],"output":["text"]}},"n":{"name":"n"}}}},`+
			`"enabled_providers":["fake"],"model":"fake/m","permission":{"bash":"ask"}}`, base, llm.Key)
		g.environ = append(g.environ, "OPENCODE_CONFIG_CONTENT="+config, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENAI_API_KEY="+llm.Key)
		r.bash = `tool bash {"command":"touch made; echo done","description":"make it"}`
	case "Gemini CLI":
		g.environ = append(g.environ, "GEMINI_API_KEY="+llm.Key, "GOOGLE_GEMINI_BASE_URL="+base, "GEMINI_CLI_TRUST_WORKSPACE=true")
		r.bash, r.slow = `tool run_shell_command {"command":"touch made; echo done","description":"make it"}`, true
	}
	return r
}

func bringNamed(t *testing.T, name string) *real {
	t.Helper()
	return bring(t, realAgents[slices.IndexFunc(realAgents, func(a realAgent) bool { return a.name == name })])
}

// tools is a server of tools that has one, which repeats its input.
func tools(t *testing.T) *agentproto.MCP {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string `json:"protocolVersion"`
				Arguments struct {
					Text string `json:"text"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Header.Get("Authorization") != "Bearer "+mcpToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		results := map[string]any{
			"initialize": map[string]any{"protocolVersion": m.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "tools", "version": "1"}},
			"tools/list": map[string]any{"tools": []any{map[string]any{"name": "repeat", "description": "Repeats a text.", "annotations": map[string]bool{"readOnlyHint": true},
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]string{"type": "string"}}}}}},
			"tools/call": map[string]any{"content": []any{map[string]string{"type": "text", "text": "repeated: " + m.Params.Arguments.Text}}},
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": results[m.Method]}
		if results[m.Method] == nil {
			answer = map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": codeMethodNotFound, "message": "none"}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return &agentproto.MCP{URL: server.URL + "/mcp", Token: mcpToken}
}

// wantContains fails the test unless the next frame answers a turn with a text that contains that.
func (s *session) wantContains(turnID, text string) agentproto.Frame {
	s.t.Helper()
	f := s.Next()
	if f.Status != agentproto.StatusOK || !slices.Equal(f.Turns(), []string{turnID}) || !strings.Contains(f.Result, text) {
		s.t.Fatalf("got %+v, want turn %s answered with %q", f, turnID, text)
	}
	return f
}

func TestReal(t *testing.T) {
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			for name, test := range map[string]func(*real){
				"answers and usage": (*real).answers, "kill and resume": (*real).killed, "cancel": (*real).cancelled,
				"permission": (*real).permission, "tools": (*real).tools, "second prompt": (*real).second, "unknown session": (*real).unknown,
				"conform": (*real).conform, "image": (*real).image, "end of input": (*real).leaves, "orders in texts": (*real).inert,
			} {
				t.Run(name, func(t *testing.T) { test(bring(t, a)) })
			}
		})
	}
}

func (r *real) answers() {
	s := r.open()
	in := agenttest.First("1", "", "say hello")
	in.System = "You are in a chat."
	s.Send(in)
	if f := s.wantContains("1", "hello"); f.NewSessionID == "" || f.Result != "hello" {
		r.t.Errorf("got %+v", f)
	}
	s.Send(agenttest.Further("2", "recall"))
	s.wantContains("2", "say hello")
	s.wantExit(0)
	var used agentproto.Usage
	texts := 0
	for _, e := range s.Events {
		if e.Usage != nil {
			used = *e.Usage
		}
		if e.Text != nil {
			texts++
		}
	}
	if texts == 0 || used.ContextUsed+used.Input == 0 || r.cost && used.CostUSD == 0 {
		r.t.Errorf("%d texts, usage %+v", texts, used)
	}
	r.t.Logf("usage %+v", used)
}

// Codex uses a key that it has stored, unless its credentials are kept in memory.
func TestReal_Codex_UsesTheKeyOfTheEnvironment(t *testing.T) {
	r := bringNamed(t, "Codex")
	stored := filepath.Join(r.home, ".codex", "auth.json")
	const login = `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-of-another-group"}`
	if err := errors.Join(os.Mkdir(filepath.Dir(stored), 0o700), os.WriteFile(stored, []byte(login), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.command = []string{r.command[0], "-c", fmt.Sprintf("openai_base_url=%q", r.base+"/v1")} // of the provider that logs in
	s := r.open()
	s.Send(agenttest.First("1", "", "say hello"))
	s.wantContains("1", "hello") // below a note about web sockets, which the fake does not have
	s.wantExit(0)
	if now, err := os.ReadFile(stored); err != nil || string(now) != login {
		t.Errorf("the stored login is %s, %v", now, err)
	}
}

// The image is in the request of its turn, and in the session.
func (r *real) image() {
	s := r.open()
	in := agenttest.First("1", "", "")
	in.Prompt = attach(r.t, r.folder, "say seen", map[string][]byte{"inbox/a.png": picture(r.t, "png", 64, 64, true)})
	s.Send(in)
	for _, turn := range []string{"1", "2"} {
		if f := s.Next(); f.Status != agentproto.StatusOK || f.TurnID != turn {
			r.t.Fatalf("got %+v", f)
		}
		const png = "iVBORw0KGgo" // how each begins, in base64
		if bodies := r.bodies(); !strings.Contains(bodies[len(bodies)-1], png) {
			r.t.Errorf("turn %s: the model was asked without the image: %.3000s", turn, bodies[len(bodies)-1])
		}
		if turn == "1" {
			s.Send(agenttest.Further("2", "recall"))
		}
	}
	s.wantExit(0)
}

// inert checks that what users write is no order for the agent's program: no file and no skill is in a request, no command has run.
func (r *real) inert() {
	const inFile, inSkill = "FILE-4711", "SKILL-4712"
	secret := filepath.Join(r.folder, "own")
	files := map[string]string{secret: inFile, filepath.Join(r.t.TempDir(), "secret"): inFile}
	for _, dir := range []string{r.home + "/.codex", r.home + "/.agents", r.folder + "/.agents", r.folder + "/.codex", r.folder + "/.claude", r.folder + "/.gemini", r.folder + "/.opencode"} {
		files[dir+"/skills/sk/SKILL.md"] = "---\nname: sk\ndescription: s\n---\n" + inSkill + "\n"
		files[dir+"/commands/cm.md"] = "---\ndescription: c\n---\n" + inSkill + " $ARGUMENTS\n"
		files[dir+"/commands/cm.toml"] = "prompt = \"" + inSkill + "\"\n"
	}
	var order strings.Builder
	for path, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			r.t.Fatal(err)
		}
		if text == inFile {
			fmt.Fprintf(&order, "@%[1]s see @%[1]s @\"%[1]s\" ok\n", path)
		}
	}
	order.WriteString("@own @./own $sk use $sk or [$sk](" + r.folder + "/.agents/skills/sk/SKILL.md)\n/sk\n/cm x\n!touch made\n!`touch made`\n#note\n")
	s := r.open()
	start := agenttest.First("1", "", order.String()+"say one")
	start.System = "You are in a chat. @name, $sk and @own notify no one.\n"
	s.Send(start)
	s.wantContains("1", "one")
	s.Send(agenttest.Further("2", "/cm x"), agenttest.Further("3", "/compact"), agenttest.Further("4", "$sk"), agenttest.Further("5", "say five"))
	for f := s.Next(); !slices.Contains(f.Turns(), "5"); f = s.Next() {
		if f.Status != agentproto.StatusOK || !strings.Contains(f.Result, "You said: ") {
			r.t.Errorf("got %+v", f)
		}
	}
	s.wantExit(0)
	for _, body := range r.bodies() {
		if strings.Contains(body, inFile) || strings.Contains(body, inSkill) || strings.Contains(body, "which is the name of a skill") {
			r.t.Fatalf("a file or a skill is in a request: %.3000s", body)
		}
	}
	if _, err := os.Stat(filepath.Join(r.folder, "made")); err == nil {
		r.t.Error("a command has run")
	}
}

// killed kills the bridge during a turn. The next run resumes the session.
func (r *real) killed() {
	session := r.killDuringTurn()
	if r.slow { // it loses sessions that it loads in the minute of their creation
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
	}
	s := r.open()
	s.Send(agenttest.First("3", session, "recall"))
	s.wantContains("3", "say hello")
	s.wantExit(0)
}

// Without the wait the session is resumed, or said to be lost.
func TestReal_GeminiLoadedAtOnce_SaysIfTheSessionIsLost(t *testing.T) {
	r := bringNamed(t, "Gemini CLI")
	session := r.killDuringTurn()
	s := r.open()
	s.Send(agenttest.First("3", session, "recall"))
	switch f := s.Next(); {
	case f.Status == agentproto.StatusOK && strings.Contains(f.Result, "say hello"): // in another minute
		s.wantExit(0)
	case f.Kind == agentproto.KindSession:
		s.wantExit(1)
	default:
		t.Errorf("got %+v", f)
	}
}

// killDuringTurn answers a turn, and kills the bridge during the next one. It returns the name of the session.
func (r *real) killDuringTurn() (session string) {
	s := r.open()
	s.Send(agenttest.First("1", "", "say hello"))
	f := s.wantContains("1", "hello")
	s.Send(agenttest.Further("2", "slow 600 say never"))
	r.waitCall("slow 600 say never")
	_ = s.Cmd.Process.Kill()
	for range 100 { // gated kills the process group; here the agent sees the end of its input
		if len(processesIn(r.t, r.folder)) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	killAll(r.t, r.folder)
	return f.NewSessionID
}

// waitCall waits until the model is asked something.
func (r *real) waitCall(order string) {
	r.t.Helper()
	for end := time.Now().Add(r.maxWait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if slices.ContainsFunc(r.bodies(), func(body string) bool { return strings.Contains(body, order) }) {
			return
		}
	}
	r.t.Fatalf("the model was not asked to %s", order)
}

// leaves checks that nothing of the agent is left soon after the end of its input. Codex stays, and is ended.
func (r *real) leaves() {
	s := r.open()
	s.Send(agenttest.First("1", "", "say hello"))
	s.wantContains("1", "hello")
	began := time.Now()
	s.wantExit(0)
	if took := time.Since(began); took > 10*time.Second {
		r.t.Errorf("its end took %s", took)
	}
}

func (r *real) cancelled() {
	s := r.open()
	s.Send(agenttest.First("1", "", "slow 600 say never"))
	r.waitCall("slow 600 say never")
	s.Send(agentproto.Interrupt{}, agenttest.Further("2", "say after"))
	s.wantContains("2", "after")
	s.wantExit(0)
	if strings.Contains(s.Log.String(), "is terminated") {
		r.t.Error("it works on after the cancel")
	}
}

func (r *real) permission() {
	for option, made := range map[string]bool{"Allow once": true, "Deny": false} {
		env := []string{}
		if r.mode != "" {
			env = append(env, "ACP_MODE="+r.mode)
		}
		s := r.open(env...)
		s.Send(agenttest.First("1", "", r.bash))
		s.Reply("1", s.Question(), option)
		f := s.Next()
		r.t.Logf("%s: %+v", option, f)
		_, err := os.Stat(filepath.Join(r.folder, "made"))
		if (err == nil) != made {
			r.t.Errorf("%s: %v, %+v", option, err, f)
		}
		_ = os.Remove(filepath.Join(r.folder, "made"))
		_ = s.Stdin.Close()
		_ = s.Cmd.Wait()
	}
}

func (r *real) tools() {
	s := r.open()
	in := agenttest.First("1", "", `tool repeat {"text":"abc"}`)
	if r.agent.name == "Claude" {
		in.Prompt = agenttest.Prompt(`tool mcp__arizuko__repeat {"text":"abc"}`)
	}
	in.MCP = tools(r.t)
	s.Send(in)
	if r.agent.name == "Gemini CLI" { // it asks about each server of tools
		s.Reply("1", s.Question(), "Allow once")
	}
	s.wantContains("1", "repeated: abc")
	s.wantExit(0)
}

func (r *real) second() {
	s := r.open()
	s.Send(agenttest.First("1", "", "slow 2 say one"))
	r.waitCall("slow 2 say one")
	two := agenttest.Further("2", "say two")
	two.Fold = r.folds
	s.Send(two)
	f := s.Next()
	if len(f.TurnIDs) == 2 {
		if !strings.Contains(f.Result, "two") {
			r.t.Errorf("got %+v", f)
		}
	} else if f.Result != "one" {
		r.t.Errorf("got %+v", f)
	} else {
		s.wantContains("2", "two")
	}
	s.wantExit(0)
}

func (r *real) unknown() {
	s := r.open()
	s.Send(agenttest.First("1", "no-such-session", "say hello"))
	s.WantError("1", agentproto.KindSession, "cannot be resumed")
	s.wantExit(1)
}

func (r *real) conform() {
	gated := gobuild.Program(r.t, gobuild.Options{}, "arizuko/gated")
	quoted := []string{"exec", bridge}
	for _, word := range r.command {
		quoted = append(quoted, "'"+word+"'")
	}
	var names []string
	for _, entry := range r.environ {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	cmd := exec.Command(gated, "agent", "conform", "-wait", "90s", "-grace", "10s", "--", strings.Join(quoted, " "))
	cmd.Env = append(slices.Clone(r.environ), "AGENT_ENV="+strings.Join(names, ","))
	out, err := cmd.CombinedOutput()
	r.t.Logf("%s", out)
	// It may lose a session that is resumed within the minute of its creation.
	lost := r.slow && bytes.Contains(out, []byte("a session is taken up again: turn 2 failed: the session cannot be resumed")) &&
		bytes.Count(out, []byte("FAILED")) == 1
	if err != nil && !lost {
		r.t.Error(err)
	}
}

// killAll kills what runs in a folder.
func killAll(t *testing.T, folder string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == folder {
			var pid int
			if _, err := fmt.Sscan(filepath.Base(filepath.Dir(link)), &pid); err == nil {
				_ = exec.Command("kill", "-9", fmt.Sprint(pid)).Run()
			}
		}
	}
}
