package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Exit codes of the inspector.
const (
	exitAuth      = 3 // the server refuses the token
	exitToolError = 5 // the result of the tool is an error
)

// eras are the forms of the protocol: with a handshake, and with the client's data in each request.
var eras = []string{"legacy", "modern"}

// result is the output of the inspector.
type result struct {
	Result struct {
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			InputSchema struct {
				Type       string         `json:"type"`
				Properties map[string]any `json:"properties"`
			} `json:"inputSchema"`
			OutputSchema map[string]any `json:"outputSchema"`
		} `json:"tools"`
		StructuredContent map[string]any `json:"structuredContent"`
		Content           []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
}

// inspect calls a method with the inspector's command line.
func (w *turn) inspect(t *testing.T, token, era, method string, args ...string) (r result, stderr string, code int) {
	t.Helper()
	stdout, stderr, code := client(t, "mcp-inspector", append([]string{
		"--cli", w.tools.URL, "--transport", "http", "--header", "Authorization: Bearer " + token, "--stored-auth-only",
		"--protocol-era", era, "--format", "json", "--method", method,
	}, args...)...)
	if stdout != "" {
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v: %q, stderr %s", err, stdout, stderr)
		}
	}
	return r, stderr, code
}

// inspectTool calls a tool with the run's token.
func (w *turn) inspectTool(t *testing.T, era, tool, arguments string) (result, int) {
	t.Helper()
	r, stderr, code := w.inspect(t, w.tools.Token, era, "tools/call", "--tool-name", tool, "--tool-args-json", arguments)
	if (code == 0) == r.Result.IsError || len(r.Result.Content) != 1 {
		t.Fatalf("exit code %d, %+v, stderr %s", code, r, stderr)
	}
	return r, code
}

func TestInspector_WithTokenOfRun_ListsAndCallsTools(t *testing.T) {
	w := startTurn(t)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			listed, stderr, code := w.inspect(t, w.tools.Token, era, "tools/list", "--strict")
			var names []string
			for _, tool := range listed.Result.Tools {
				names = append(names, tool.Name)
				if tool.Description == "" || tool.InputSchema.Type != "object" || tool.OutputSchema["type"] != "object" {
					t.Errorf("tool %+v", tool)
				}
			}
			if code != 0 || strings.TrimSpace(stderr) != "" || !slices.Contains(names, "send_message") || len(names) < 20 {
				t.Errorf("exit code %d, tools %q, remarks about their schemas:\n%s", code, names, stderr)
			}
			if r, _ := w.inspectTool(t, era, "poll_list", "{}"); len(r.Result.StructuredContent) == 0 || r.Result.StructuredContent["polls"] == nil {
				t.Errorf("%+v", r)
			}
			r, _ := w.inspectTool(t, era, "send_message", `{"text":"by the inspector, `+era+`"}`)
			out := w.Outbound(chat)
			if last := out[len(out)-1]; last.Content != "by the inspector, "+era || r.Result.StructuredContent["message_id"] != float64(last.ID) {
				t.Errorf("%+v, the last message is %+v", r, last)
			}
			for arguments, reason := range map[string]string{`{"groupFolder":"other"}`: "out of reach", `{"folder":"main"}`: "folder"} {
				if r, code := w.inspectTool(t, era, "reset_session", arguments); code != exitToolError || !strings.Contains(r.Result.Content[0].Text, reason) {
					t.Errorf("exit code %d, %+v, want it refused for %q", code, r, reason)
				}
			}
		})
	}
	t.Run("token", func(t *testing.T) { w.wantRefused(t, "wrong", w.tools.Token+"x") })
	w.stop()
	t.Run("token of an ended run", func(t *testing.T) { w.wantRefused(t, w.tools.Token) })
}

// wantRefused fails the test unless clients with these tokens are refused, and no client sees a token.
func (w *turn) wantRefused(t *testing.T, tokens ...string) {
	t.Helper()
	for _, token := range tokens {
		for _, era := range eras {
			r, stderr, code := w.inspect(t, token, era, "tools/list")
			if code != exitAuth || len(r.Result.Tools) > 0 || strings.Contains(stderr, w.tools.Token) {
				t.Errorf("%s, token %q: exit code %d, %+v, stderr %s", era, token, code, r, stderr)
			}
		}
	}
}
