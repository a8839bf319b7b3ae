package anthropic

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Reply is what the model does about a request.
type Reply struct {
	Text       string
	Tools      []ToolUse
	StopReason string        // end_turn, or tool_use with Tools, if empty
	Wait       time.Duration // before the first word; a stream has begun by then
	Status     int           // refuse the request, with Text or the status's usual words
}

// ToolUse is a call the model wants made.
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

// FollowCommand is a model that does what the last line of the user's last message says:
//
//	say TEXT           answers TEXT
//	slow N …           waits N seconds, then does what follows
//	tool NAME INPUT    uses a tool; INPUT is an object, or else the command of Bash
//	error STATUS       fails with that HTTP status
//	refuse             stops for a refusal, without a word
//	recall             lists what it was told before, one line a message
//
// and answers anything else with "You said: " and the line. What a tool returned it repeats.
func FollowCommand(r Request) Reply {
	if result := r.result(); result != nil {
		if result.IsError {
			return Reply{Text: "The tool failed: " + result.Content.Text()}
		}
		return Reply{Text: "The tool said: " + result.Content.Text()}
	}
	orders := r.Commands()
	if len(orders) == 0 {
		return Reply{Text: "You said nothing."}
	}
	last := len(orders) - 1
	return obey(orders[last], orders[:last])
}

func obey(order string, before []string) Reply {
	verb, rest, _ := strings.Cut(order, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(verb) {
	case "say":
		return Reply{Text: rest}
	case "slow":
		number, then, _ := strings.Cut(rest, " ")
		if seconds, err := strconv.ParseFloat(strings.TrimSuffix(number, "s"), 64); err == nil && seconds >= 0 && seconds <= 3600 {
			reply := obey(then, before)
			reply.Wait += time.Duration(seconds * float64(time.Second))
			return reply
		}
	case "tool":
		name, input, _ := strings.Cut(rest, " ")
		if name != "" {
			return Reply{Tools: []ToolUse{{Name: name, Input: toolInput(input)}}}
		}
	case "error":
		if status, err := strconv.Atoi(rest); err == nil && status >= 400 && status <= 599 {
			return Reply{Status: status}
		}
	case "refuse":
		return Reply{StopReason: "refusal"}
	case "recall":
		return Reply{Text: "Before: " + strings.Join(before, "\n")}
	}
	return Reply{Text: "You said: " + order}
}

func toolInput(text string) any {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err == nil {
		return object
	}
	return map[string]any{"command": text, "description": "what it was told"}
}
