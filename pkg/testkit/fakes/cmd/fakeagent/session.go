package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"image"
	_ "image/gif"  // formats of images
	_ "image/jpeg" // in a prompt
	_ "image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// session is a conversation. It is kept in a file in the working folder.
type session struct {
	agent *agent
	ID    string
	Said  []string `json:"said"` // by users, oldest first
	Cost  float64  `json:"cost"` // of earlier runs, if there is the fault total-cost

	tools       []string
	system      string
	model, mode string
	images      []string // of the running turn

	mu        sync.Mutex
	working   bool
	cancelled chan struct{} // closed to cancel the turn
	steered   []string
	waiting   []message // second prompts
	cost      float64
}

func (s *session) path() string { return filepath.Join(".fakeagent", s.ID+".json") }

func (s *session) restore() bool {
	data, err := os.ReadFile(s.path())
	return err == nil && json.Unmarshal(data, s) == nil
}

func (s *session) store() {
	data, err := json.Marshal(object{"ID": s.ID, "said": s.Said, "cost": s.cost})
	if err == nil {
		err = os.MkdirAll(".fakeagent", 0o700)
	}
	if err == nil {
		err = os.WriteFile(s.path(), data, 0o600)
	}
	if err != nil {
		fail("%v", err)
	}
}

func (s *session) opened() object {
	var choices, available []any
	for _, m := range models {
		choices = append(choices, object{"value": m, "name": strings.ToUpper(m)})
		available = append(available, object{"modelId": m, "name": strings.ToUpper(m)})
	}
	if fault("loose") != "" {
		return object{"sessionId": s.ID, "modes": []int{1}, "models": nil, "configOptions": object{"id": 5}}
	}
	o := object{"sessionId": s.ID, "modes": object{"currentModeId": s.mode,
		"availableModes": []any{object{"id": "ask", "name": "Ask"}, object{"id": "code", "name": "Code"}}}}
	if fault("models") == "none" {
		return o
	}
	if fault("models") == "set" {
		o["models"] = object{"currentModelId": s.model, "availableModels": available}
		return o
	}
	o["configOptions"] = []any{
		object{"id": "fast", "name": "Fast", "type": "boolean", "currentValue": true},
		object{"id": "llm", "category": "model", "name": "Model", "type": "select", "currentValue": s.model,
			"options": []any{object{"group": "g", "name": "G", "options": choices}}},
	}
	return o
}

func (s *session) update(update object) {
	s.agent.write(object{"jsonrpc": "2.0", "method": "session/update",
		"params": object{"sessionId": s.ID, "update": update}})
}

func text(of string) object { return object{"type": "text", "text": of} }

// say writes a text in chunks.
func (s *session) say(message, words string) {
	for i := 0; i < len(words); i += 5 {
		s.update(object{"sessionUpdate": "agent_message_chunk", "messageId": message,
			"content": text(words[i:min(i+5, len(words))])})
	}
}

// replay repeats earlier messages.
func (s *session) replay() {
	for i, said := range s.Said {
		s.update(object{"sessionUpdate": "user_message_chunk", "content": text(said)})
		s.say("old-"+strconv.Itoa(i), "An old answer to "+said)
		s.update(object{"sessionUpdate": "tool_call", "toolCallId": "old", "title": "An old tool",
			"status": "completed"})
	}
	s.update(object{"sessionUpdate": "usage_update", "used": 1, "size": 100,
		"cost": object{"amount": float64(len(s.Said)), "currency": "USD"}})
	s.cost = float64(len(s.Said))
}

var messageText = regexp.MustCompile(`(?s)<message [^>]*>(.*?)(?:<attachment [^>]*/>)*</message>`)

// block is a part of a prompt.
type block struct {
	Type, Text string
	Data       []byte
	MIMEType   string
	URI        string
}

// read returns the text of a prompt, and the format and size of its images.
func read(prompt []block) (text string, images []string) {
	for _, b := range prompt {
		switch {
		case b.Type == "text" && b.Data == nil:
			text += b.Text
		case b.Type == "image" && fault("no-image") == "" && b.URI == "":
			size, format, err := image.DecodeConfig(bytes.NewReader(b.Data))
			if err != nil || "image/"+format != b.MIMEType {
				fail("an image of type %s: %s, %v", b.MIMEType, format, err)
			}
			images = append(images, fmt.Sprintf("%s %dx%d", format, size.Width, size.Height))
		default:
			fail("a block of type %q", b.Type)
		}
	}
	return text, images
}

func (a *agent) prompt(m message) {
	p := params[struct {
		Session string `json:"sessionId"`
		Prompt  []block
	}](m)
	s := a.sessions[p.Session]
	if s == nil || len(p.Prompt) == 0 {
		a.refuse(m, -32002, "Resource not found: "+p.Session)
		return
	}
	all, images := read(p.Prompt)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working {
		s.second(m)
		return
	}
	s.working, s.cancelled, s.steered, s.images = true, make(chan struct{}), nil, images
	order := all
	if found := messageText.FindAllStringSubmatch(all, -1); found != nil {
		order = html.UnescapeString(found[len(found)-1][1])
	}
	go s.work(m, all, strings.TrimSpace(order))
}

// second receives a prompt while another one is worked on.
func (s *session) second(m message) {
	switch fault("second") {
	case "cancels":
		close(s.cancelled)
		s.waiting = append(s.waiting, m)
	case "joined":
		s.waiting = append(s.waiting, m)
	case "lost":
	default:
		fail("a second prompt while it works")
	}
}

func (a *agent) cancel(m message) {
	p := params[struct {
		Session string `json:"sessionId"`
	}](m)
	s := a.sessions[p.Session]
	if s == nil || m.ID != nil {
		fail("session/cancel: %s", m.Params)
	}
	if fault("no-cancel") != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.working:
	case fault("late-cancel") != "":
		time.AfterFunc(time.Second, func() { close(s.cancelled) })
	default:
		close(s.cancelled)
	}
}

func (a *agent) steer(m message) {
	p := params[struct {
		Session string `json:"sessionId"`
		Prompt  []block
		Meta    struct {
			Steering struct{ IdleBehavior string }
		} `json:"_meta"`
	}](m)
	s := a.sessions[p.Session]
	if fault("steering") == "" || s == nil || p.Meta.Steering.IdleBehavior != "promptRequired" {
		fail("%s: %s", m.Method, m.Params)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.working {
		a.respond(m, object{"outcome": "promptRequired", "reason": "noRunningTurn"})
		return
	}
	all, images := read(p.Prompt)
	s.steered = append(s.steered, strings.Join(append(messageText.FindStringSubmatch(all)[1:], images...), " "))
	a.respond(m, object{"outcome": "injected"})
}

// work does a turn and answers its prompt.
func (s *session) work(m message, whole, order string) {
	var stop, refusal string
	if word, kind := cut(order); word == "hostile" {
		if s.hostile(m, kind) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.working = false
			return
		}
		stop = "end_turn"
	} else {
		stop, refusal = s.obey(whole, order)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.cancelled:
		stop = "cancelled"
	default:
		for _, more := range s.steered {
			s.say("steered", "and "+more)
		}
	}
	s.Said = append(s.Said, order)
	s.store()
	s.working = false
	if refusal != "" {
		code, words, _ := strings.Cut(refusal, " ")
		number, err := strconv.Atoi(code)
		if err != nil {
			number, words = -32603, refusal
		}
		s.agent.refuse(m, number, words)
		return
	}
	result := object{"stopReason": stop, "usage": object{"inputTokens": 10, "cachedReadTokens": 5, "outputTokens": 7,
		"totalTokens": 22}}
	s.end(m, order, result)
	for _, second := range s.waiting {
		s.agent.respond(second, object{"stopReason": "end_turn"})
	}
	s.waiting = nil
}

// wait waits, unless the turn is cancelled.
func (s *session) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.cancelled:
	}
}

// waitUntil waits until something has happened, unless the turn is cancelled.
func (s *session) waitUntil(happened func() bool) {
	for !happened() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.cancelled:
			return
		}
	}
}

// order splits the first word off.
func cut(order string) (word, rest string) {
	word, rest, _ = strings.Cut(order, " ")
	return word, rest
}

// obey carries an order out. refusal is a code and a text, "" for none.
func (s *session) obey(whole, order string) (stop, refusal string) {
	word, rest := cut(order)
	switch word {
	case "fold":
		return s.obey(whole, rest)
	case "slow":
		seconds, then := cut(rest)
		n, _ := strconv.ParseFloat(seconds, 64)
		s.wait(time.Duration(n * float64(time.Second)))
		return s.obey(whole, then)
	case "stop":
		reason, words := cut(rest)
		s.say("m", words)
		return reason, ""
	case "error":
		return "", rest
	case "half":
		s.say("m", "half of it")
		return "", rest
	case "exit":
		fmt.Fprintln(os.Stderr, "exiting as ordered")
		os.Exit(3)
	case "gone":
		os.Exit(0)
	case "empty":
		return "end_turn", ""
	case "hang": // up stdin, which main does, or stdout
		if rest == "up stdout" {
			_ = s.agent.out.Close()
			s.wait(time.Hour)
		}
		s.say("m", "hung up")
		return "end_turn", ""
	}
	s.answer(word, rest, whole, order)
	return "end_turn", ""
}

// answer obeys orders that end with an answer.
func (s *session) answer(word, rest, whole, order string) {
	switch word {
	case "recall":
		s.say("m", "Before: "+strings.Join(s.Said, " | "))
	case "work", "tool":
		s.tool(rest)
	case "permit":
		s.permit(rest)
	case "allowing":
		s.allowing(rest)
	case "twice":
		s.twice(rest)
	case "command":
		s.command(rest)
	case "loud":
		s.loud()
	case "many":
		s.many(rest)
	case "big":
		n, _ := strconv.Atoi(rest)
		s.update(object{"sessionUpdate": "agent_message_chunk", "content": text(strings.Repeat("é", n))})
	case "late", "later", "segment":
		s.say("m", "first")
	case "choose", "ask_user":
		s.choose(rest)
	case "odd":
		s.odd()
	case "files":
		m := s.agent.call("fs/read_text_file", object{"sessionId": s.ID, "path": "/etc/passwd"})
		s.say("m", fmt.Sprintf("files: error %d", m.Error.Code))
	case "setup":
		s.say("m", fmt.Sprintf("tools %q system %q model %s mode %s", s.tools, s.system, s.model, s.mode))
	case "prompt":
		s.say("m", whole)
	case "arguments":
		s.say("m", fmt.Sprintf("%q %s", os.Args[1:], os.Getenv("ARIZUKO_MCP_TOKEN")))
	case "images":
		s.say("m", fmt.Sprintf("%q", s.images))
	case "huge":
		fmt.Println(strings.Repeat("x", 70<<20))
	case "say", "last":
		s.say("m", rest)
	default:
		s.say("m", "You said: "+order)
	}
}
