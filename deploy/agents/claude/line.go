package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"arizuko/deploy/agents/internal/pictures"
)

// line is a line of the CLI's output, with the fields that are used. Other fields and types are
// ignored, so that newer versions may add some.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`

	// system/init, before each turn
	Version    string `json:"claude_code_version"`
	Model      string `json:"model"`
	MCPServers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`

	// system/api_retry
	Attempt      int     `json:"attempt"`
	ErrorStatus  int     `json:"error_status"` // 0 without a response
	RetryDelayMS float64 `json:"retry_delay_ms"`

	// rate_limit_event
	RateLimit struct {
		Status   string `json:"status"`   // rejected: no call is answered before
		ResetsAt int64  `json:"resetsAt"` // Unix time
	} `json:"rate_limit_info"`

	// assistant
	UUID          string          `json:"uuid"`               // in the session
	Message       json.RawMessage `json:"message"`            // of the model
	ParentToolUse string          `json:"parent_tool_use_id"` // of the tool call that a subagent works for
	Error         string          `json:"error"`              // the CLI's name for a failure, such as rate_limit

	// stream_event: of the model's API
	Event json.RawMessage `json:"event"`

	// user: the result of a tool
	ToolUseResult json.RawMessage `json:"tool_use_result"`

	// result
	Usage          json.RawMessage `json:"usage"`          // of the turn
	ModelUsage     json.RawMessage `json:"modelUsage"`     // of the process, by model
	TotalCost      json.RawMessage `json:"total_cost_usd"` // of the process
	IsError        bool            `json:"is_error"`
	Result         string          `json:"result"`
	Errors         []string        `json:"errors"`
	APIStatus      int             `json:"api_error_status"` // HTTP status, 0 without a response
	TerminalReason string          `json:"terminal_reason"`
	UserMessages   []string        `json:"user_message_uuids"`
	Origin         json.RawMessage `json:"origin"` // of a turn that no message started

	// command_lifecycle: how far a message is
	CommandUUID string `json:"command_uuid"`
	State       string `json:"state"` // queued, started, completed or cancelled

	// control_request
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype     string          `json:"subtype"`
		ToolName    string          `json:"tool_name"`
		Input       json.RawMessage `json:"input"`
		CallbackID  string          `json:"callback_id"` // of a hook, whose input has the tool call
		BlockedPath string          `json:"blocked_path"`
		ReasonType  string          `json:"decision_reason_type"`
	} `json:"request"`

	invalid error // from parsing
}

// readLine parses a line. An error is in the field invalid.
func readLine(data []byte) line {
	var l line
	l.invalid = json.Unmarshal(data, &l)
	return l
}

// The CLI exits at a line that it cannot parse, so its input is always marshalled.

type userLine struct {
	Type    string      `json:"type"`
	UUID    string      `json:"uuid"`
	Message userMessage `json:"message"`
}

type userMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // textBlock, imageBlock
}

// textBlock is a text, which may be empty.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type imageBlock struct {
	Type   string      `json:"type"`
	Source imageSource `json:"source"`
}

type imageSource struct {
	Type string `json:"type"`
	MIME string `json:"media_type"`
	Data string `json:"data"`
}

// userLine is a prompt with the images of its messages, which are in the folder where this program runs.
func (r *run) userLine(uuid, text string) userLine {
	content := []any{textBlock{"text", text}}
	for _, p := range pictures.Of(text, ".", r.log) {
		image := imageSource{"base64", p.MIME, p.Data}
		content = append(content, textBlock{"text", p.Label}, imageBlock{"image", image})
	}
	return userLine{"user", uuid, userMessage{"user", content}}
}

type controlRequest struct {
	Type      string         `json:"type"`
	RequestID string         `json:"request_id"`
	Request   map[string]any `json:"request"`
}

func newInterrupt(id string) controlRequest {
	return controlRequest{"control_request", id, map[string]any{"subtype": "interrupt"}}
}

// newCancel takes back a message that the CLI has not begun.
func newCancel(uuid string) controlRequest {
	return controlRequest{"control_request", "cancel-" + uuid,
		map[string]any{"subtype": "cancel_async_message", "message_uuid": uuid}}
}

type controlResponse struct {
	Type     string         `json:"type"`
	Response map[string]any `json:"response"`
}

// supported is the response to a control request that the client supports.
func supported(l line, response map[string]any) controlResponse {
	return controlResponse{"control_response", map[string]any{
		"subtype": "success", "request_id": l.RequestID, "response": response,
	}}
}

// mayUseTool is the subtype of a control request for a permission.
const mayUseTool = "can_use_tool"

// answer is the response to a control request: a permission is denied for a reason, others are not supported.
func answer(l line, reason string) controlResponse {
	if l.Request.Subtype != mayUseTool {
		return controlResponse{"control_response", map[string]any{
			"subtype": "error", "request_id": l.RequestID, "error": "not supported by this client",
		}}
	}
	return supported(l, map[string]any{"behavior": "deny", "message": reason})
}

// denial tells the model why a permission is denied and how to go on. Where only the path is the reason,
// more permissions for the tool would open every path.
func denial(l line) string {
	if l.Request.ReasonType == "workingDir" || l.Request.BlockedPath != "" {
		return "There are no permission prompts here, and this path is outside your working folder. " +
			"Use files in that folder, or tell the user that the file has to be put there or sent to the chat."
	}
	return fmt.Sprintf("There are no permission prompts here. Do without, or tell the user that an operator "+
		"may allow it by adding %s to CLAUDE_ALLOWED_TOOLS.", l.Request.ToolName)
}

// failed reports whether a result is a failure.
func (l *line) failed() bool {
	return l.invalid != nil || l.IsError || strings.HasPrefix(l.Subtype, "error")
}

// answers reports whether a result ends the turn of a message. A CLI that does not name the messages of
// a result has no turns.
func (l *line) answers(uuid string) bool {
	if len(l.UserMessages) == 0 {
		return len(l.Origin) == 0 || string(l.Origin) == "null"
	}
	return slices.Contains(l.UserMessages, uuid)
}
