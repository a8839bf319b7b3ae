// Caller is an agent without a model, for tests: it does what the lines of its messages say, and its answer has a line for
// each. Other lines are ignored; without any the answer is empty.
//
//	call TOOL ARGUMENTS   calls a tool with arguments in JSON; answers its name and its result, or "error" and its text
//	say TEXT              answers TEXT
//	wait FILE             waits until there is a file of that name in its folder; answers nothing
//
// In arguments $this stands for the id of the message, $text for its text within a JSON string, and $message_id, $poll_id
// and $id for that field of the last result that has it.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "caller:", err)
		os.Exit(1)
	}
}

// run answers the inputs of one run, one after another.
func run(in io.Reader, out io.Writer) error {
	var start agentproto.Start
	values := map[string]string{}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			input, err := agentproto.ReadInput(line)
			if err != nil {
				return err
			}
			frame := agentproto.Frame{Status: agentproto.StatusOK}
			switch input := input.(type) {
			case agentproto.Start:
				start = input
				if start.SessionID == "" {
					frame.NewSessionID = "caller-" + input.TurnID
				}
				frame.TurnID, frame.Result = input.TurnID, answer(start.MCP, values, input.Prompt)
			case agentproto.Message:
				frame.TurnID, frame.Result = input.TurnID, answer(start.MCP, values, input.Prompt)
			default:
				continue
			}
			if err := agentproto.WriteFrame(out, frame); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// message matches a message in a prompt. Text is escaped there: < and > only occur in tags.
var (
	message = regexp.MustCompile(`(?s)<message(?: id="(\d+)")?(?:\s[^>]*)?>(.*?)</message>`)
	anyTag  = regexp.MustCompile(`<[^>]*>`)
	name    = regexp.MustCompile(`\$[a-z_]+`)
)

// answer does what the messages of a prompt say. values are what names in arguments stand for.
func answer(mcp *agentproto.MCP, values map[string]string, prompt string) string {
	_, block, _ := strings.Cut(prompt, "<messages")
	var said []string
	for _, m := range message.FindAllStringSubmatch(block, -1) {
		text := html.UnescapeString(anyTag.ReplaceAllString(m[2], ""))
		quoted, err := json.Marshal(text)
		if err != nil {
			return "error text: " + err.Error()
		}
		values["$this"], values["$text"] = m[1], string(quoted[1:len(quoted)-1])
		for line := range strings.Lines(text) {
			said = append(said, follow(mcp, values, strings.TrimSpace(line))...)
		}
	}
	return strings.Join(said, "\n")
}

// follow does what a line says, and returns the lines of its answer.
func follow(mcp *agentproto.MCP, values map[string]string, line string) []string {
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "say":
		return []string{rest}
	case "wait":
		await(rest)
	case "call":
		tool, arguments, _ := strings.Cut(rest, " ")
		arguments = name.ReplaceAllStringFunc(arguments, func(n string) string { return cmp.Or(values[n], n) })
		text := call(mcp, tool, arguments)
		remember(values, text)
		return []string{tool + " " + text}
	}
	return nil
}

// remember keeps the ids of a result.
func remember(values map[string]string, result string) {
	var ids map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &ids) != nil {
		return
	}
	for _, field := range []string{"message_id", "poll_id", "id"} {
		if id, has := ids[field]; has {
			values["$"+field] = string(id)
		}
	}
}

// await waits until there is a file.
func await(file string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
}

// call calls a tool, and returns its result or "error" and why there is none.
func call(mcp *agentproto.MCP, tool, arguments string) string {
	if mcp == nil {
		return "error no tools"
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": json.RawMessage(arguments)},
	})
	if err != nil {
		return "error arguments: " + err.Error()
	}
	request, err := http.NewRequest(http.MethodPost, mcp.URL, bytes.NewReader(body))
	if err != nil {
		return "error " + err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Authorization", "Bearer "+mcp.Token)
	client := http.Client{Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return "error " + err.Error()
	}
	defer response.Body.Close()
	return result(response)
}

// result reads the answer to a call.
func result(response *http.Response) string {
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error *struct{ Message string }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Sprintf("error status %d: %v", response.StatusCode, err)
	}
	if answer.Error != nil {
		return "error " + answer.Error.Message
	}
	var texts []string
	for _, c := range answer.Result.Content {
		texts = append(texts, c.Text)
	}
	text := strings.Join(texts, "\n")
	if answer.Result.IsError {
		return "error " + text
	}
	return text
}
