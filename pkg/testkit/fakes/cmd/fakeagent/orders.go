package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tool uses a tool, between two texts, and says all that can be said of it.
func (s *session) tool(name string) {
	s.update(object{"sessionUpdate": "agent_thought_chunk", "content": text("a thought that is not to be seen")})
	s.say("m1", "I look. ")
	if fault("completed-only") == "" {
		s.update(object{"sessionUpdate": "tool_call", "toolCallId": "t", "title": name, "kind": "execute",
			"status": "pending", "rawInput": object{"command": name}})
		s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress"})
		s.update(object{"sessionUpdate": "plan", "entries": []any{object{"content": "look", "priority": "high",
			"status": "in_progress"}}})
	}
	switch name {
	case "long":
		s.wait(time.Hour)
	case "steered": // it ends once a message was taken in
		s.waitUntil(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.steered) > 0
		})
	case "muted": // … once a call was left without an answer
		s.waitUntil(s.agent.muted.Load)
	}
	s.wait(150 * time.Millisecond)
	s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": name, "kind": "execute",
		"status": "completed", "rawOutput": object{"x": 1}})
	s.cost += 0.25
	s.update(object{"sessionUpdate": "usage_update", "used": 50, "size": 100,
		"cost": object{"amount": s.cost, "currency": "USD"}})
	s.say("m1", "It is done.")
}

// permit asks for a permission.
func (s *session) permit(command string) {
	s.update(object{"sessionUpdate": "tool_call", "toolCallId": "p", "title": "Run it", "kind": "execute",
		"status": "pending", "rawInput": object{"command": command}})
	options := []any{
		object{"optionId": "always", "name": "Always", "kind": "allow_always"},
		object{"optionId": "once", "name": "Once", "kind": "allow_once"},
		object{"optionId": "no", "name": "No", "kind": "reject_once"},
	}
	if command == "for good" {
		options = append(options[:1:1], options[2])
	}
	m := s.agent.call("session/request_permission", object{
		"sessionId": s.ID, "options": options,
		"toolCall": object{"toolCallId": "p", "title": "Run it", "kind": "execute",
			"rawInput": object{"command": command}},
	})
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		fail("%s", m.Result)
	}
	if command == "or end" && r.Outcome.OptionID == "no" {
		return
	}
	if command == "or stop" && r.Outcome.OptionID == "no" {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.cancelled)
		return
	}
	s.say("m", "permission: "+r.Outcome.Outcome+" "+r.Outcome.OptionID)
}

// choose asks users to choose, by a form.
func (s *session) choose(kind string) {
	properties := object{
		"colour": object{"type": "string", "title": "Colour",
			"oneOf": []any{object{"const": "r", "title": "red"}, object{"const": "g", "title": "green"}}},
		"note": object{"type": "string", "title": "Anything else?"},
	}
	required := []string{"colour"}
	if kind == "text" {
		required = append(required, "note")
	}
	m := s.agent.call("elicitation/create", object{
		"sessionId": s.ID, "mode": "form", "message": "Which one?",
		"requestedSchema": object{"type": "object", "properties": properties, "required": required},
	})
	s.say("m", "chosen: "+string(m.Result))
}

// odd sends updates that are not of the turn, or of no known kind, before the answer.
func (s *session) odd() {
	for _, update := range []object{
		{"sessionUpdate": "user_message_chunk", "content": text("not the agent's words")},
		{"sessionUpdate": "a_new_kind", "content": text("not the agent's words"), "messageId": "m"},
		{"sessionUpdate": "agent_message_chunk", "content": object{"type": "image", "data": "AAAA",
			"mimeType": "image/png"}},
		{"sessionUpdate": "agent_message_chunk", "content": 5},
		{"sessionUpdate": "tool_call", "toolCallId": 7, "title": []int{1}},
		{"sessionUpdate": "plan", "entries": "none"},
		{"content": text("not the agent's words")},
	} {
		s.update(update)
	}
	s.agent.write(object{"jsonrpc": "2.0", "method": "session/update",
		"params": object{"sessionId": "another", "update": object{"sessionUpdate": "agent_message_chunk",
			"content": text("another session")}}})
	s.agent.write(object{"jsonrpc": "2.0", "method": "_vendor/news", "params": object{"a": 1}})
	s.agent.write(object{"jsonrpc": "2.0", "id": 4711, "result": object{}})
	fmt.Println(`{"jsonrpc":"2.0","method":`)
	fmt.Println(`[1,2]`)
	fmt.Println(`{"level":"error","error":"the disk is slow"}`)
	fmt.Println(`{"error":{"code":503,"message":"no telemetry"},"id":null}`)
	s.say("m", "fine")
}

// early says something of a session that has had no prompt.
func (s *session) early() {
	s.update(object{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
	s.update(object{"sessionUpdate": "usage_update", "used": 1, "size": 100,
		"cost": object{"amount": 3, "currency": "USD"}})
	s.cost = 3
	s.say("welcome", "Welcome to a new session!")
}

// end responds to the prompt of a turn, with updates after the response where the order says so, or in one piece with
// it.
func (s *session) end(m message, order string, result object) {
	word, rest := cut(order)
	chunk := object{"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text(" " + rest)}
	switch {
	case word == "late":
		time.AfterFunc(50*time.Millisecond, func() { s.update(chunk) })
	case word == "later":
		time.AfterFunc(time.Second, func() { s.update(chunk) })
	case fault("late-cancel") != "" && result["stopReason"] == "cancelled":
		time.AfterFunc(50*time.Millisecond, func() { s.say("m", "of the cancelled turn") })
	case word == "segment":
		params := object{"sessionId": s.ID, "update": chunk}
		update, _ := json.Marshal(object{"jsonrpc": "2.0", "method": "session/update", "params": params})
		response, _ := json.Marshal(object{"jsonrpc": "2.0", "id": m.ID, "result": result})
		s.agent.printLines(append(append(append(update, '\n'), response...), '\n'))
		return
	}
	if word == "last" {
		s.agent.respond(m, result)
		os.Exit(0)
	}
	if fault("loose") != "" {
		s.update(object{"sessionUpdate": "usage_update", "used": "50", "size": "100",
			"cost": object{"amount": "0.5", "currency": "USD"}})
		s.update(object{"sessionUpdate": "agent_message_chunk", "messageId": nil,
			"content": object{"type": "text", "text": "!", "annotations": nil}})
		s.update(object{"sessionUpdate": "agent_message_chunk", "messageId": 5,
			"content": object{"type": "text", "text": nil}})
		s.update(object{"sessionUpdate": "tool_call", "toolCallId": "t", "title": nil, "kind": 5, "status": nil,
			"rawInput": nil})
		result = object{"stopReason": nil, "usage": object{"inputTokens": "10", "outputTokens": "7",
			"cachedReadTokens": nil}}
	}
	s.agent.respond(m, result)
}

// twice asks for two permissions with one id, without waiting for the response to the first.
func (s *session) twice(other string) {
	responses := make(chan message, 2)
	s.agent.mu.Lock()
	s.agent.calls["77"] = responses
	s.agent.mu.Unlock()
	for _, command := range []string{"ls", other} {
		s.agent.write(object{"jsonrpc": "2.0", "id": 77, "method": "session/request_permission", "params": object{
			"sessionId": s.ID, "options": []any{object{"optionId": "once", "kind": "allow_once"},
				object{"optionId": "no", "kind": "reject_once"}},
			"toolCall": object{"toolCallId": "p", "title": "Run it", "kind": "execute",
				"rawInput": object{"command": command}},
		}})
	}
	s.update(object{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "asked twice", "status": "pending"})
	s.say("m", "permission: "+string((<-responses).Result))
}

// command runs a command whose title is the command, as of Claude and Codex.
func (s *session) command(command string) {
	s.update(object{"sessionUpdate": "tool_call", "toolCallId": "c", "title": command, "status": "pending",
		"rawInput": object{"command": command}})
	s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "`" + command + "`",
		"kind": "execute", "status": "completed"})
	s.update(object{"sessionUpdate": "tool_call", "toolCallId": "d", "title": command, "kind": "execute",
		"rawInput": object{"command": []string{command}, "description": "Look into the database"}})
	s.update(object{"sessionUpdate": "tool_call", "toolCallId": "f",
		"title": "Fetch https://user:example-pass@example.com/page?key=example-pass#x now", "kind": "fetch"})
	s.say("m", "done")
}

// loud writes much to stderr, the most of it in one line.
func (s *session) loud() {
	line := strings.Repeat("noise ", 1000)
	for range 1000 {
		fmt.Fprint(os.Stderr, line)
	}
	for range 1000 {
		fmt.Fprintln(os.Stderr, line)
	}
	s.say("m", "quiet now")
}

// many writes an answer of so many pieces of 5 bytes.
func (s *session) many(pieces string) {
	n, _ := strconv.Atoi(pieces)
	s.say("m", strings.Repeat("words", n))
}
