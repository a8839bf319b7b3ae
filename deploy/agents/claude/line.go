package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// line is one of the CLI's output: the fields we look at of the types we know. Others are
// ignored, so that newer versions can say more.
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
	Attempt     int `json:"attempt"`
	ErrorStatus int `json:"error_status"`

	// assistant: its own word for what failed, such as rate_limit
	Error string `json:"error"`

	// result
	IsError      bool            `json:"is_error"`
	Result       string          `json:"result"`
	Errors       []string        `json:"errors"`
	APIStatus    int             `json:"api_error_status"` // HTTP, 0 without an answer
	UserMessages []string        `json:"user_message_uuids"`
	Origin       json.RawMessage `json:"origin"` // of a turn that nobody's message began

	// control_request
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype  string `json:"subtype"`
		ToolName string `json:"tool_name"`
	} `json:"request"`

	broken error
}

// readLine returns what it could make out, and why that is not all in broken.
func readLine(data []byte) line {
	var l line
	l.broken = json.Unmarshal(data, &l)
	return l
}

// The CLI ends at a line it cannot parse: what it is sent is always marshalled.

type userLine struct {
	Type    string      `json:"type"`
	UUID    string      `json:"uuid"`
	Message userMessage `json:"message"`
}

type userMessage struct {
	Role    string      `json:"role"`
	Content []textBlock `json:"content"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newUserLine(uuid, text string) userLine {
	return userLine{"user", uuid, userMessage{"user", []textBlock{{"text", text}}}}
}

type controlRequest struct {
	Type      string         `json:"type"`
	RequestID string         `json:"request_id"`
	Request   map[string]any `json:"request"`
}

func newInterrupt(id string) controlRequest {
	return controlRequest{"control_request", id, map[string]any{"subtype": "interrupt"}}
}

type controlResponse struct {
	Type     string         `json:"type"`
	Response map[string]any `json:"response"`
}

// answer is what a control request is told: permissions are denied, anything else is not had.
func answer(l line) controlResponse {
	if l.Request.Subtype != "can_use_tool" {
		return controlResponse{"control_response", map[string]any{
			"subtype": "error", "request_id": l.RequestID, "error": "not supported by this client",
		}}
	}
	reason := fmt.Sprintf("Nobody can be asked for permission here. Do without, or tell the user that an operator "+
		"may allow it by adding %s to CLAUDE_ALLOWED_TOOLS.", l.Request.ToolName)
	return controlResponse{"control_response", map[string]any{
		"subtype": "success", "request_id": l.RequestID,
		"response": map[string]any{"behavior": "deny", "message": reason},
	}}
}

// failed reports whether a result is none.
func (l *line) failed() bool {
	return l.broken != nil || l.IsError || strings.HasPrefix(l.Subtype, "error")
}

// answers reports whether a result is the end of the turn that the message began. A CLI that
// does not say whose the result is has no turns of its own making.
func (l *line) answers(uuid string) bool {
	if len(l.UserMessages) == 0 {
		return len(l.Origin) == 0 || string(l.Origin) == "null"
	}
	return slices.Contains(l.UserMessages, uuid)
}
