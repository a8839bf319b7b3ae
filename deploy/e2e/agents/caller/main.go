// Caller is an agent without a model, for tests: it calls the tools that its messages name. A line
//
//	call TOOL ARGUMENTS
//
// of a message, with the arguments in JSON, is a call. The answer has a line for each call, the tool's name and its result,
// or "error" and its text; without calls it is empty. A message that begins with "say " is answered with the rest of it.
package main

import (
	"bufio"
	"bytes"
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
				frame.TurnID, frame.Result = input.TurnID, answer(start.MCP, input.Prompt)
			case agentproto.Message:
				frame.TurnID, frame.Result = input.TurnID, answer(start.MCP, input.Prompt)
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

// Text in a prompt is escaped: < and > only occur in tags.
var (
	messagesBlock = regexp.MustCompile(`(?s)<messages(?:\s[^>]*)?>(.*?)</messages>`)
	anyTag        = regexp.MustCompile(`<[^>]*>`)
)

// answer does what the messages of a prompt say.
func answer(mcp *agentproto.MCP, prompt string) string {
	block := messagesBlock.FindStringSubmatch(prompt)
	if block == nil {
		return ""
	}
	var said []string
	for line := range strings.Lines(html.UnescapeString(anyTag.ReplaceAllString(block[1], ""))) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "say "); ok {
			said = append(said, text)
		}
		if order, ok := strings.CutPrefix(line, "call "); ok {
			tool, arguments, _ := strings.Cut(order, " ")
			said = append(said, tool+" "+call(mcp, tool, arguments))
		}
	}
	return strings.Join(said, "\n")
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
