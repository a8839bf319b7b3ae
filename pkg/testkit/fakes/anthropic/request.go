package anthropic

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// maxBody is the documented limit of a request.
const maxBody = 32 << 20

// Request is the body of a call of messages.
type Request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	System    Content   `json:"system"`
	Messages  []Message `json:"messages"`
	Tools     []Tool    `json:"tools"`

	midSystem bool // system messages are allowed between the others
}

// Message is one message of the conversation. Role is user, assistant or, with the beta header for
// it, system.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// Tool is a tool that the model may use.
type Tool struct {
	Name string `json:"name"`
}

// Content is a list of blocks. On the wire it may be a string, which is one text block.
type Content []Block

// Block is a block of content: the fields of a text, a tool_use and a tool_result.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`          // of a tool_use
	Name      string          `json:"name"`        // of its tool
	Input     json.RawMessage `json:"input"`       // to it
	ToolUseID string          `json:"tool_use_id"` // a tool_result's
	Content   Content         `json:"content"`     // a tool_result's
	IsError   bool            `json:"is_error"`
}

// UnmarshalJSON takes a list of blocks or a string.
func (c *Content) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]Block)(c))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c = Content{{Type: "text", Text: text}}
	return nil
}

// Text is the text blocks, joined by line breaks.
func (c Content) Text() string {
	var texts []string
	for _, b := range c {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func readRequest(c Call) (Request, error) {
	if len(c.Body) > maxBody {
		return Request{}, refusal(http.StatusRequestEntityTooLarge, "")
	}
	var r Request
	if err := json.Unmarshal(c.Body, &r); err != nil {
		return Request{}, refusal(http.StatusBadRequest, "The request body is not valid JSON: "+err.Error())
	}
	r.midSystem = strings.Contains(c.Header.Get("anthropic-beta"), "mid-conversation")
	return r, nil
}

// check refuses the requests that the API refuses. Every model whose name begins with "claude-" is known.
func (r *Request) check() error {
	bad := func(format string, args ...any) error {
		return refusal(http.StatusBadRequest, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Model == "":
		return bad("model: Field required")
	case r.MaxTokens < 1:
		return bad("max_tokens: Field required")
	case len(r.Messages) == 0:
		return bad("messages: at least one message is required")
	case !strings.HasPrefix(r.Model, "claude-"):
		return refusal(http.StatusNotFound, "model: "+r.Model)
	}
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" && (m.Role != "system" || !r.midSystem) {
			return bad("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		for _, b := range m.Content {
			if b.Type == "text" && b.Text == "" {
				return bad("messages: text content blocks must be non-empty")
			}
		}
	}
	return r.checkTools(bad)
}

// checkTools requires the result of each tool use in the message that follows it.
func (r *Request) checkTools(bad func(string, ...any) error) error {
	var open []string
	for i, m := range r.Messages {
		if m.Role == "system" {
			continue
		}
		if m.Role == "user" {
			for _, id := range m.Content.results() {
				j := slices.Index(open, id)
				if j < 0 {
					return bad("messages.%d.content.0: unexpected `tool_use_id` found in `tool_result` blocks: %s", i,
						id)
				}
				open = slices.Delete(open, j, j+1)
			}
		}
		if len(open) > 0 {
			return bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i-1,
				strings.Join(open, ", "))
		}
		open = m.Content.uses()
	}
	return nil
}

func (c Content) uses() (ids []string) {
	for _, b := range c {
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

func (c Content) results() (ids []string) {
	for _, b := range c {
		if b.Type == "tool_result" {
			ids = append(ids, b.ToolUseID)
		}
	}
	return ids
}

// tokens estimates the size of the request.
func (r *Request) tokens() int {
	n := len(r.System.Text())
	for _, m := range r.Messages {
		n += len(m.Content.Text())
	}
	return n/4 + 1
}

// reminder matches the text that Claude Code adds to a user's.
var (
	reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
	tag      = regexp.MustCompile(`<[^>]*>`)
)

// Commands are the last lines of the user's messages, oldest first. A tag ends a line, and
// entities are unescaped. Messages without text have none.
func (r *Request) Commands() (commands []string) {
	for _, m := range r.Messages {
		if m.Role != "user" {
			continue
		}
		if text := m.Content.userText(); text != "" {
			commands = append(commands, strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]))
		}
	}
	return commands
}

// userText is the text without Claude Code's additions, and without tags.
func (c Content) userText() string {
	text := reminder.ReplaceAllString(c.Text(), "")
	return strings.TrimSpace(html.UnescapeString(tag.ReplaceAllString(text, "\n")))
}

// command is the last of Commands; "" without any.
func (r *Request) command() string {
	if commands := r.Commands(); len(commands) > 0 {
		return commands[len(commands)-1]
	}
	return ""
}

// result is the tool result that the request ends with; nil if a text of the user follows it.
func (r *Request) result() *Block {
	var last Message
	for _, m := range r.Messages {
		if m.Role != "system" {
			last = m
		}
	}
	i := slices.IndexFunc(last.Content, func(b Block) bool { return b.Type == "tool_result" })
	if i < 0 || last.Content.userText() != "" {
		return nil
	}
	return &last.Content[i]
}
