// Caller is an agent without a model, for tests: it does what the lines of its messages say, and its answer has a line
// for each. Other lines are ignored; without any the answer is empty.
//
//	call TOOL ARGUMENTS   calls a tool with arguments in JSON; answers its name and its result, or "error" and its text
//	say TEXT              answers TEXT
//	read FILE             answers the text of a file in its folder
//	write FILE TEXT       adds a line to a file in its folder; answers nothing
//	remove FILE           removes a file in its folder; answers nothing
//	session NAME          gives its session another name; answers nothing
//	wait FILE             waits until there is a file of that name in its folder; answers nothing
//
// In arguments $this stands for the id of the message, $text for its text within a JSON string, $file for that of the
// file read last, and $message_id, $poll_id and $id for that field of the last result that has it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

func main() {
	if err := agentproto.Serve(context.Background(), os.Stdin, os.Stdout, caller()); err != nil {
		fmt.Fprintln(os.Stderr, "caller:", err)
		os.Exit(1)
	}
}

func caller() agentproto.Agent {
	values := map[string]string{}
	return agentproto.Agent{Log: os.Stderr, Answer: func(ctx context.Context, t *agentproto.Turn) (r agentproto.Reply,
		err error) {
		if t.Session == "" {
			r.Session = "caller-" + t.ID
		}
		r.Text = answer(ctx, t.Start.MCP, values, t.Prompt)
		r.Session = cmp.Or(values["session"], r.Session)
		return r, nil
	}}
}

// message matches a message in a prompt. Text is escaped there: < and > only occur in tags.
var (
	message = regexp.MustCompile(`(?s)<message(?: id="(\d+)")?(?:\s[^>]*)?>(.*?)</message>`)
	anyTag  = regexp.MustCompile(`<[^>]*>`)
	name    = regexp.MustCompile(`\$[a-z_]+`)
)

// answer obeys the messages of a prompt. values are the values of names in arguments.
func answer(ctx context.Context, mcp *agentproto.MCP, values map[string]string, prompt string) string {
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
			said = append(said, follow(ctx, mcp, values, strings.TrimSpace(line))...)
		}
	}
	return strings.Join(said, "\n")
}

// follow obeys a line, and returns the lines of its answer.
func follow(ctx context.Context, mcp *agentproto.MCP, values map[string]string, line string) []string {
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "say":
		return []string{rest}
	case "read":
		text, err := os.ReadFile(rest)
		if err != nil {
			return []string{"error " + err.Error()}
		}
		quoted, _ := json.Marshal(string(text)) // a string can always be encoded
		values["$file"] = string(quoted[1 : len(quoted)-1])
		return []string{strings.TrimSuffix(string(text), "\n")}
	case "write", "remove":
		if err := change(what, rest); err != nil {
			return []string{"error " + err.Error()}
		}
	case "session":
		values["session"] = rest
	case "wait":
		await(ctx, rest)
	case "call":
		tool, arguments, _ := strings.Cut(rest, " ")
		arguments = name.ReplaceAllStringFunc(arguments, func(n string) string { return cmp.Or(values[n], n) })
		text := call(ctx, mcp, tool, arguments)
		remember(values, text)
		return []string{tool + " " + text}
	}
	return nil
}

// change writes or removes a file.
func change(what, rest string) (err error) {
	file, text, _ := strings.Cut(rest, " ")
	if what == "remove" {
		return os.Remove(file)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
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

// await waits until there is a file, or the turn ends.
func await(ctx context.Context, file string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// call calls a tool, and returns its result or "error" and why there is none.
func call(ctx context.Context, mcp *agentproto.MCP, tool, arguments string) string {
	if mcp == nil {
		return "error no tools"
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": json.RawMessage(arguments)},
	})
	if err != nil {
		return "error arguments: " + err.Error()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, mcp.URL, bytes.NewReader(body))
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
