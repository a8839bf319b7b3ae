// Fakeagent is an agent of the Agent Client Protocol for tests, written at the wire level. It obeys orders in the last
// message of a prompt, and has the faults that its arguments name, all of them seen in real agents.
//
//	no-resume, no-load     it does not announce that it can resume or load sessions
//	lacks=METHOD           it does not know a method that it announces, as Qwen Code with session/resume
//	late-replay            earlier messages come after the answer to session/load, as of Gemini CLI 0.61
//	load-fails             session/load fails with -32603, as of Gemini CLI 0.61, after a part of the replay
//	second=joined          a second prompt while it works is answered with the first, as of OpenCode 1.18
//	second=lost            … never, as of claude-code-acp 0.16
//	second=cancels         … and the first one is cancelled, as of Gemini CLI 0.61
//	stays                  it does not exit at the end of its input, as codex-acp 0.16
//	stubborn               nor at SIGTERM, and it leaves a process behind
//	completed-only         of a tool only its end is said, as of Gemini CLI 0.61
//	noise                  lines that are no messages, unknown messages, and requests with odd ids
//	huge                   a line that is too long
//	mute=METHOD            no answer to the method
//	dies=METHOD            it exits when the method is called
//	version=N              it speaks this version of the protocol only
//	auth                   it wants method fake-api-key, and FAKE_API_KEY
//	steering               it takes messages into the running turn, as claude-agent-acp 0.100
//	no-http                it takes tools from programs only
//	slow-start             its start takes as long as that of claude-agent-acp 0.100 on a busy machine
//	system                 it takes a system prompt, as claude-agent-acp 0.100
//	no-image               it takes no images
//	no-cancel              it works on after session/cancel
//	early                  it says something of a session before it has named it, and after it
//	replays                it repeats earlier messages at session/resume, before its answer and after it
//	total-cost             the cost of a session that it resumes includes that of earlier runs, as of OpenCode 1.18
//	split                  it writes each line in two pieces, with a character between them
//	loose                  numbers are texts, texts are numbers, objects are null
//	late-cancel            it answers a second after session/cancel, and says something after that
//	models=set             models have a method of their own, instead of an option of the session
//	models=none            it offers no choice of models
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// fault is the value of an argument, "" if it is not there, and "yes" if it has no value.
func fault(name string) string {
	for _, arg := range os.Args[1:] {
		if got, value, has := strings.Cut(arg, "="); got == name {
			if !has {
				return "yes"
			}
			return value
		}
	}
	return ""
}

type object = map[string]any

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// agent is the fake.
type agent struct {
	mu            sync.Mutex
	out           *os.File
	initialized   bool
	authenticated bool
	sessions      map[string]*session
	lastID        int
	calls         map[string]chan message
	muted         atomic.Bool // a call was left without an answer
	deaf          atomic.Bool // it reads no more
}

func main() {
	if fault("stubborn") != "" {
		signal.Ignore(syscall.SIGTERM)
		_ = exec.Command("setsid", "sleep", "600").Start()
	}
	a := &agent{out: os.Stdout, sessions: map[string]*session{}, calls: map[string]chan message{}}
	if fault("noise") != "" {
		fmt.Println("Welcome to the fake agent!")
		fmt.Fprintln(os.Stderr, "a line on stderr")
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, os.ErrClosed) { // by an order
			<-time.After(time.Hour)
		}
		if err != nil {
			break
		}
		if a.deaf.Load() {
			select {}
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
			fail("not JSON-RPC: %s", line)
		}
		if bytes.Contains(line, []byte("hang up stdin")) {
			_ = os.Stdin.Close()
		}
		a.receive(m)
	}
	if fault("stays") != "" || fault("stubborn") != "" {
		select {}
	}
}

// fail ends the fake: the client has broken the protocol.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "fakeagent: broken protocol: "+format+"\n", args...)
	os.Exit(9)
}

func (a *agent) receive(m message) {
	if m.Method == "" {
		a.mu.Lock()
		waiting := a.calls[string(m.ID)]
		delete(a.calls, string(m.ID))
		a.mu.Unlock()
		if waiting == nil {
			fail("a response to no request: %s", m.ID)
		}
		waiting <- m
		return
	}
	if !a.initialized && m.Method != "initialize" {
		fail("%s before initialize", m.Method)
	}
	if fault("dies") == m.Method {
		fmt.Fprintln(os.Stderr, "dying of "+m.Method)
		os.Exit(1)
	}
	if fault("mute") == m.Method {
		a.muted.Store(true)
		return
	}
	if handle := a.methods()[m.Method]; handle != nil && fault("lacks") != m.Method {
		handle(m)
		return
	}
	a.refuse(m, -32601, "Method not found")
}

func (a *agent) methods() map[string]func(message) {
	return map[string]func(message){
		"initialize": a.initialize, "authenticate": a.authenticate,
		"session/new": a.open, "session/resume": a.open, "session/load": a.open,
		"session/prompt": a.prompt, "session/cancel": a.cancel, "_session/steering": a.steer,
		"session/set_config_option": a.set, "session/set_model": a.set, "session/set_mode": a.set,
	}
}

func (a *agent) write(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		fail("%v", err)
	}
	a.printLines(append(line, '\n'))
}

// printLines prints lines in one piece, or in two.
func (a *agent) printLines(lines []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := bytes.IndexByte(lines, "é"[0]); i >= 0 && fault("split") != "" {
		_, _ = a.out.Write(lines[:i+1])
		<-time.After(20 * time.Millisecond)
		lines = lines[i+1:]
	}
	_, _ = a.out.Write(lines)
}

func (a *agent) respond(m message, result any) {
	a.write(object{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

func (a *agent) refuse(m message, code int, text string) {
	if fault("loose") != "" {
		a.write(object{"jsonrpc": 2, "id": m.ID, "error": object{"code": fmt.Sprint(code), "message": text,
			"data": nil}})
		return
	}
	a.write(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": code, "message": text,
		"data": object{"details": "of the fake"}}})
}

// call sends a request to the client and waits for the response.
func (a *agent) call(method string, params any) message {
	a.mu.Lock()
	a.lastID++
	id := fmt.Sprintf(`"fake-%d"`, a.lastID)
	switch {
	case fault("noise") != "" && a.lastID == 1:
		id = "null"
	case a.lastID%2 == 0:
		id = fmt.Sprint(a.lastID)
	}
	response := make(chan message, 1)
	a.calls[id] = response
	a.mu.Unlock()
	a.write(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	return <-response
}

// params decodes parameters; those that are missing break the protocol.
func params[T any](m message) (p T) {
	if err := json.Unmarshal(m.Params, &p); err != nil {
		fail("%s: %v", m.Method, err)
	}
	return p
}

// slowStart is how long a slow start takes.
const slowStart = 2 * time.Second

func (a *agent) initialize(m message) {
	if fault("slow-start") != "" {
		<-time.After(slowStart)
	}
	p := params[struct {
		Version int `json:"protocolVersion"`
		Client  struct {
			FS       map[string]bool `json:"fs"`
			Terminal bool            `json:"terminal"`
		} `json:"clientCapabilities"`
	}](m)
	if p.Version != 1 || p.Client.Terminal || p.Client.FS["readTextFile"] || p.Client.FS["writeTextFile"] {
		fail("initialize: %s", m.Params)
	}
	a.initialized = true
	version := 1
	if v := fault("version"); v != "" {
		_, _ = fmt.Sscan(v, &version)
	}
	sessions := object{}
	if fault("no-resume") == "" {
		sessions["resume"] = object{}
	}
	if fault("system") != "" {
		sessions["systemPrompt"] = object{"mode": object{"override": object{}}}
	}
	if fault("loose") != "" {
		a.respond(m, object{
			"protocolVersion": "1", "agentInfo": nil, "authMethods": object{}, "_meta": nil,
			"agentCapabilities": object{"loadSession": "yes", "sessionCapabilities": object{"resume": object{}},
				"mcpCapabilities": nil},
		})
		return
	}
	a.respond(m, object{
		"protocolVersion": version,
		"agentCapabilities": object{
			"loadSession": fault("no-load") == "", "sessionCapabilities": sessions,
			"mcpCapabilities":    object{"http": fault("no-http") == ""},
			"promptCapabilities": object{"image": fault("no-image") == ""},
		},
		"agentInfo":   object{"name": "fake", "version": "1.2.3"},
		"authMethods": []any{object{"id": "browser", "name": "Log in"}, object{"id": "fake-api-key", "name": "Key"}},
		"_meta":       object{"steering": object{"supported": fault("steering") != ""}},
	})
}

func (a *agent) authenticate(m message) {
	if p := params[struct {
		ID string `json:"methodId"`
	}](m); p.ID != "fake-api-key" || os.Getenv("FAKE_API_KEY") != "good-key" {
		a.refuse(m, -32000, "Invalid key")
		return
	}
	a.authenticated = true
	a.respond(m, object{})
}

// models are those that the fake has; the last one can be named but not used.
var models = []string{"small", "large", "broken"}

func (a *agent) open(m message) {
	p := params[struct {
		Session string `json:"sessionId"`
		CWD     string `json:"cwd"`
		Servers []struct {
			Type    string
			Name    string
			URL     string
			Command string
		} `json:"mcpServers"`
		System *struct {
			Mode    string
			Content []struct{ Text string }
		} `json:"systemPrompt"`
	}](m)
	if !strings.HasPrefix(p.CWD, "/") || p.Servers == nil || (p.Session == "") != (m.Method == "session/new") {
		fail("%s: %s", m.Method, m.Params)
	}
	if fault("auth") != "" && !a.authenticated {
		a.refuse(m, -32000, "Authentication required")
		return
	}
	s := &session{agent: a, ID: p.Session, model: models[0], mode: "ask"}
	switch {
	case m.Method == "session/load" && fault("load-fails") != "":
		s.failToLoad(m)
		return
	case p.Session == "":
		s.ID = fmt.Sprintf("fake-%d", time.Now().UnixNano())
	case !s.restore():
		a.refuse(m, -32002, "Resource not found: "+p.Session)
		return
	}
	if fault("total-cost") != "" {
		s.cost = s.Cost
	}
	for _, server := range p.Servers {
		s.tools = append(s.tools, fmt.Sprintf("%s %s %s%s", server.Type, server.Name, server.URL, server.Command))
	}
	if p.System != nil {
		if fault("system") == "" || p.System.Mode != "append" {
			fail("systemPrompt: %s", m.Params)
		}
		s.system = p.System.Content[0].Text
	}
	a.sessions[s.ID] = s
	if fault("early") != "" {
		s.early()
		defer time.AfterFunc(50*time.Millisecond, s.early)
	}
	if m.Method == "session/resume" && fault("replays") != "" {
		s.replay()
		defer time.AfterFunc(100*time.Millisecond, s.replay)
	}
	if m.Method == "session/load" && fault("late-replay") == "" {
		s.replay()
	}
	a.respond(m, s.opened())
	if m.Method == "session/load" && fault("late-replay") != "" {
		time.AfterFunc(100*time.Millisecond, s.replay)
	}
}

// failToLoad refuses a session while it is replayed.
func (s *session) failToLoad(m message) {
	old := object{"sessionUpdate": "agent_message_chunk", "content": text("an old answer")}
	for range 2000 {
		s.update(old)
	}
	s.agent.refuse(m, -32603, "Internal error: cannot load")
	s.update(old)
}

func (a *agent) set(m message) {
	p := params[struct {
		Session  string `json:"sessionId"`
		ConfigID string `json:"configId"`
		Value    string `json:"value"`
		ModelID  string `json:"modelId"`
		ModeID   string `json:"modeId"`
	}](m)
	s := a.sessions[p.Session]
	if s == nil {
		fail("%s: %s", m.Method, m.Params)
	}
	value := p.Value + p.ModelID + p.ModeID
	if value == "broken" {
		a.refuse(m, -32602, "this model is not for you")
		return
	}
	if p.ModeID != "" || p.ConfigID == "mode" {
		s.mode = value
	} else if slices.Contains(models, value) {
		s.model = value
	}
	a.respond(m, s.opened())
}
