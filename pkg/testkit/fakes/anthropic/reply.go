package anthropic

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Reply is how a model answers a request.
type Reply struct {
	Text       string
	Tools      []ToolUse
	StopReason string        // end_turn, or tool_use with Tools, if empty
	Wait       time.Duration // before the content; a stream has begun by then
	Status     int           // refuse the request, with Text or the usual message of the status
}

// ToolUse is a call of a tool.
type ToolUse struct {
	Name  string
	Input any // marshals to a JSON object
}

func (r *Reply) stopReason() string {
	if len(r.Tools) > 0 {
		return cmp.Or(r.StopReason, "tool_use")
	}
	return cmp.Or(r.StopReason, "end_turn")
}

// FollowCommand is a model that follows the last line of the user's last message:
//
//	say TEXT           answers TEXT
//	slow N …           waits N seconds, then obeys the rest
//	tool NAME INPUT    uses a tool; INPUT is an object, or else the command of Bash
//	error STATUS TEXT  fails with that HTTP status, and the status's usual text without TEXT
//	refuse             stops with the reason refusal and no content
//	recall             lists the earlier commands, one a line
//
// It answers anything else with "You said: " and the line, and repeats the result of a tool.
func FollowCommand(r Request) Reply {
	if result := r.result(); result != nil {
		if result.IsError {
			return Reply{Text: "The tool failed: " + result.Content.Text()}
		}
		return Reply{Text: "The tool said: " + result.Content.Text()}
	}
	commands := r.Commands()
	if len(commands) == 0 {
		return Reply{Text: "You said nothing."}
	}
	last := len(commands) - 1
	return follow(commands[last], commands[:last])
}

func follow(command string, before []string) Reply {
	verb, rest, _ := strings.Cut(command, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(verb) {
	case "say":
		return Reply{Text: rest}
	case "slow":
		number, then, _ := strings.Cut(rest, " ")
		if seconds, err := strconv.ParseFloat(strings.TrimSuffix(number, "s"), 64); err == nil && seconds >= 0 &&
			seconds <= 3600 {
			reply := follow(then, before)
			reply.Wait += time.Duration(seconds * float64(time.Second))
			return reply
		}
	case "tool":
		name, input, _ := strings.Cut(rest, " ")
		if name != "" {
			return Reply{Tools: []ToolUse{{Name: name, Input: toolInput(input)}}}
		}
	case "error":
		number, text, _ := strings.Cut(rest, " ")
		if status, err := strconv.Atoi(number); err == nil && status >= 400 && status <= 599 {
			return Reply{Status: status, Text: strings.TrimSpace(text)}
		}
	case "refuse":
		return Reply{StopReason: "refusal"}
	case "recall":
		return Reply{Text: "Before: " + strings.Join(before, "\n")}
	}
	return Reply{Text: "You said: " + command}
}

func toolInput(text string) any {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err == nil {
		return object
	}
	return map[string]any{"command": text, "description": "a command"}
}
