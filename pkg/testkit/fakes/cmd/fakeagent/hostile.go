package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// hostile does something that the protocol does not forbid, or that only a careful client survives. It reports whether
// the turn ends without a response of its own.
func (s *session) hostile(m message, kind string) (answered bool) {
	big := strings.Repeat("x", 2<<20)
	switch kind {
	case "texts": // that are far too long, and numbers that are none
		s.tooLong(big)
	case "nameless error": // of a request that it cannot read
		s.agent.write(object{"jsonrpc": "2.0", "id": nil, "error": object{"code": -32700, "message": "Parse error"}})
		return true
	case "error without id":
		s.agent.write(object{"jsonrpc": "2.0", "error": object{"code": -32600, "message": "Invalid Request"}})
		return true
	case "decimal id":
		s.say("m", "fine")
		fmt.Printf(`{"jsonrpc":"2.0","id":%s.0,"result":{"stopReason":"end_turn"}}`+"\n", m.ID)
		return true
	case "deaf": // it asks for much, and reads no response
		s.agent.deaf.Store(true)
		for id := range 5000 {
			s.agent.write(object{"jsonrpc": "2.0", "id": id + 100000, "method": "terminal/create",
				"params": object{"sessionId": s.ID, "command": "rm"}})
		}
		return true
	case "child": // that keeps the pipes open
		child := exec.Command("sleep", "600")
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = child.Start()
		os.Exit(3)
	case "half a line":
		_, _ = s.agent.out.WriteString(`{"jsonrpc":"2.0","id":`)
		s.wait(time.Hour)
	case "many calls":
		for i := range 12000 {
			s.update(object{"sessionUpdate": "tool_call", "toolCallId": fmt.Sprint("call ", i), "title": "Look"})
			s.say(fmt.Sprint("m", i), ".")
		}
	default:
		fail("no order %q", kind)
	}
	return false
}

func (s *session) tooLong(big string) {
	s.update(object{"sessionUpdate": "tool_call", "toolCallId": big, "title": big, "kind": big, "status": big,
		"rawInput": object{"path": big}})
	steps := make([]any, 60)
	for i := range steps {
		steps[i] = object{"content": big[:100<<10], "status": big[:100<<10]}
	}
	s.update(object{"sessionUpdate": "plan", "entries": steps})
	for _, n := range []string{"-5", "1e400", "1e300", `"NaN"`, `"Infinity"`} {
		s.agent.printLines(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,`+
			`"update":{"sessionUpdate":"usage_update","used":%s,"size":%s,"cost":{"amount":%s,"currency":"USD"}}}}`+"\n",
			s.ID, n, n, n))
	}
	s.say("m", "fine")
}

// allowing asks for a permission of an odd kind, and says the response.
func (s *session) allowing(kind string) {
	once, no := object{"optionId": "once", "kind": "allow_once"}, object{"optionId": "no", "kind": "reject_once"}
	options := []any{once, no}
	var input any = object{"command": "ls"}
	sessionID := s.ID
	switch kind {
	case "none":
		options = []any{}
	case "thousand":
		for i := range 1000 {
			options = append(options, object{"optionId": fmt.Sprint(i), "kind": "allow_forever"})
		}
	case "unknown":
		options = []any{object{"optionId": "a", "kind": "allow_forever"}, object{"optionId": "b", "kind": "deny"}}
	case "same id":
		options = []any{object{"optionId": "once", "kind": "allow_always"}, once, no}
	case "same id to deny":
		options = []any{once, object{"optionId": "once", "kind": "reject_once"}}
	case "numbers":
		options = []any{object{"optionId": 1, "kind": "allow_once"}}
	case "another session":
		sessionID = "another"
	case "large":
		input = object{"content": strings.Repeat("\x01x", 2<<20)}
	case "deep":
		const depth = 5000
		input = json.RawMessage(strings.Repeat("[", depth) + "0" + strings.Repeat(",0", 200000) +
			strings.Repeat("]", depth))
	}
	m := s.agent.call("session/request_permission", object{"sessionId": sessionID, "options": options,
		"toolCall": object{"toolCallId": "p", "title": "Run it", "kind": "execute", "rawInput": input}})
	s.say("m", string(m.Result))
}
