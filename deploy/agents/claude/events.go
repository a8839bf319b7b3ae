package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"arizuko/deploy/agents/internal/title"
	"arizuko/deploy/agents/internal/turn"
	"arizuko/pkg/agentproto"
)

// shown is the state of the running turn as events have shown it.
type shown struct {
	writing text // that the model writes, until the CLI prints the whole message
	textAt  time.Time
	used    agentproto.Usage // so far; the CLI names the cost at the end
	message agentproto.Usage // of the message that the model writes
	calls   map[string]call  // of tools that have not ended, by id
	retry   string           // why calls of the model's API fail, in words; "" if they don't
}

// call is a call of a tool that the model made.
type call struct {
	tool agentproto.Tool
	name string
	args toolArgs
}

// toolArgs are the arguments of Claude Code's tools that are used. Each tool has some of them.
type toolArgs struct {
	Description string `json:"description"`
	FilePath    string `json:"file_path"`
	Notebook    string `json:"notebook_path"`
	URL         string `json:"url"`
	Todos       []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"todos"`
	TaskID  string `json:"taskId"`
	Subject string `json:"subject"`
	Status  string `json:"status"`
}

// modelMessage has the parts of a message in the lines assistant and user that are used.
type modelMessage struct {
	Content []struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		IsError   bool            `json:"is_error"`
	} `json:"content"`
}

// streamEvent has the parts of an event of the model's API that are used.
type streamEvent struct {
	Type    string `json:"type"`
	Message struct {
		ID    string     `json:"id"`
		Usage modelUsage `json:"usage"`
	} `json:"message"`
	Delta struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"delta"`
	Usage modelUsage `json:"usage"`
}

// modelUsage is in tokens.
type modelUsage struct {
	Input         int64 `json:"input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	Output        int64 `json:"output_tokens"`
}

// modelFacts has the parts of the CLI's account of a model that are used.
type modelFacts struct {
	ContextWindow int64 `json:"contextWindow"`
}

// decoded reads a part of a line. ok is false if it is in another form than known, as of a later version.
func decoded[T any](part json.RawMessage) (v T, ok bool) {
	err := json.Unmarshal(part, &v)
	return v, err == nil
}

func (u modelUsage) input() int64 { return u.Input + u.CacheCreation + u.CacheRead }

// show shows users the part of the running turn that a line is about. Unreadable lines are left out: they are in a form
// of a later version, and no answer depends on them.
func (r *run) show(l line) error {
	if r.running == nil || r.running.dropped || l.ParentToolUse != "" { // the call that a subagent works for is shown
		return nil
	}
	switch l.Type {
	case "stream_event":
		return r.showStream(l)
	case "assistant":
		return r.showCalls(l)
	case "user":
		return r.showResults(l)
	case "result":
		return r.showUsage(l)
	}
	return nil
}

// showStream shows the text that the model writes.
func (r *run) showStream(l line) error {
	e, ok := decoded[streamEvent](l.Event)
	if !ok {
		return nil
	}
	w := r.running
	switch e.Type {
	case "message_start":
		if w.shown.retry != "" {
			if err := r.showRetry(0, agentproto.ToolDone); err != nil {
				return err
			}
		}
		w.shown.writing = text{message: e.Message.ID}
		w.shown.message = agentproto.Usage{Input: e.Message.Usage.input()}
	case "content_block_delta":
		if e.Delta.Type != "text_delta" { // a thought, or a part of a call
			return w.Alive()
		}
		w.shown.writing.text += e.Delta.Text
		if time.Since(w.shown.textAt) < turn.TextInterval {
			return nil
		}
		return r.showText()
	case "message_delta":
		w.shown.message.Output = e.Usage.Output
	case "message_stop":
		m := w.shown.message
		w.shown.used.Input, w.shown.used.Output = w.shown.used.Input+m.Input, w.shown.used.Output+m.Output
		w.shown.used.ContextUsed, w.shown.message = m.Input+m.Output, agentproto.Usage{}
		return r.running.Emit(agentproto.Event{Usage: &w.shown.used})
	}
	return nil
}

// showRetry shows why the model says nothing, as if that were a tool, or that it says something again.
func (r *run) showRetry(status int, state agentproto.ToolStatus) error {
	shown := &r.running.shown
	if state == agentproto.ToolRunning {
		reason := map[int]string{0: "cannot be reached", http.StatusTooManyRequests: "refuses more requests (429)",
			statusOverloaded: "is overloaded (529)"}[status]
		shown.retry = "Waiting: the model " + cmp.Or(reason, fmt.Sprintf("is failing (%d)", status))
	}
	e := agentproto.Event{Tool: &agentproto.Tool{ID: "api_retry", Title: shown.retry, Status: state}}
	if state == agentproto.ToolDone {
		shown.retry = ""
	}
	return r.running.Emit(e)
}

// showText shows all that the model has said in the turn.
func (r *run) showText() error {
	w := r.running
	w.shown.textAt = time.Now()
	all := w.said
	if strings.TrimSpace(w.shown.writing.text) != "" {
		all = append(slices.Clone(all), w.shown.writing)
	}
	return r.running.Emit(agentproto.Event{Text: new(r.cfg.secrets.Growing(all.answer("")))})
}

// showCalls shows the tools that a message of the model calls, and its text, which is whole now.
func (r *run) showCalls(l line) error {
	w := r.running
	if w.shown.writing.text != "" {
		w.shown.writing.text = ""
		if err := r.showText(); err != nil {
			return err
		}
	}
	m, ok := decoded[modelMessage](l.Message)
	if !ok {
		return nil
	}
	for _, block := range m.Content {
		if block.Type != "tool_use" || block.ID == "" {
			continue
		}
		c := call{name: block.Name}
		_ = json.Unmarshal(block.Input, &c.args) // an unreadable input is not shown
		c.tool = agentproto.Tool{ID: block.ID, Title: r.cfg.redact(c.title()), Kind: kinds[c.name],
			Status: agentproto.ToolRunning}
		c.tool.Input = agentproto.Truncate(r.cfg.redact(title.Input(block.Input)), agentproto.MaxInput)
		if w.shown.calls == nil {
			w.shown.calls = map[string]call{}
		}
		w.shown.calls[block.ID] = c
		if r.plan.has(c.name) {
			continue // it is shown once it has succeeded
		}
		if err := r.running.Emit(agentproto.Event{Tool: &c.tool}); err != nil {
			return err
		}
	}
	return nil
}

// showResults shows which calls have ended.
func (r *run) showResults(l line) error {
	m, ok := decoded[modelMessage](l.Message)
	if !ok {
		return nil // a text
	}
	for _, block := range m.Content {
		c, known := r.running.shown.calls[block.ToolUseID]
		if block.Type != "tool_result" || !known {
			continue
		}
		delete(r.running.shown.calls, block.ToolUseID)
		var e agentproto.Event
		switch {
		case r.plan.has(c.name) && block.IsError:
			continue
		case r.plan.has(c.name):
			if !r.plan.apply(c, l.ToolUseResult) {
				continue
			}
			e.Plan = &agentproto.Plan{Entries: r.plan.entries(r.cfg.redact)}
		default:
			c.tool.Status = agentproto.ToolDone
			if block.IsError {
				c.tool.Status = agentproto.ToolFailed
			}
			e.Tool = &c.tool
		}
		if err := r.running.Emit(e); err != nil {
			return err
		}
	}
	return nil
}

// showUsage shows the usage of a turn at its end.
func (r *run) showUsage(l line) error {
	if u, ok := decoded[modelUsage](l.Usage); ok && u != (modelUsage{}) {
		r.running.shown.used.Input, r.running.shown.used.Output = u.input(), u.Output
	}
	if models, ok := decoded[map[string]modelFacts](l.ModelUsage); ok {
		r.running.shown.used.ContextSize = models[r.cli.model].ContextWindow
	}
	if total, ok := decoded[float64](l.TotalCost); ok { // of the process
		r.running.shown.used.CostUSD = max(total-r.cli.cost, 0)
		r.cli.cost = max(total, r.cli.cost)
	}
	if r.running.shown.used == (agentproto.Usage{}) {
		return nil
	}
	return r.running.Emit(agentproto.Event{Usage: &r.running.shown.used})
}

// kinds are the kinds of Claude Code's tools.
var kinds = map[string]string{
	"Bash": "execute", "Read": "read", "Edit": "edit", "Write": "edit", "NotebookEdit": "edit", "Glob": "search",
	"Grep":      "search",
	"WebSearch": "search", "WebFetch": "fetch", "Task": "think",
}

// title describes a call in a line. It has no arguments but the names of files and hosts: all users of the chat
// read it, and a command, a pattern or an address may hold a secret.
func (c *call) title() string {
	file := relative(cmp.Or(c.args.FilePath, c.args.Notebook))
	named := func(words, what string) string { return strings.TrimSpace(words + " " + what) }
	switch c.name {
	case "Bash":
		return cmp.Or(c.args.Description, title.Command)
	case "Read":
		return named("Read", file)
	case "Edit", "NotebookEdit":
		return named("Edit", file)
	case "Write":
		return named("Write", file)
	case "Glob", "Grep":
		return "Search files"
	case "WebSearch":
		return "Search the web"
	case "WebFetch":
		return named("Read", hostOf(c.args.URL))
	case "Task":
		return cmp.Or(c.args.Description, "Ask a subagent")
	}
	return strings.TrimPrefix(c.name, "mcp__"+mcpServer+"__")
}

// hostOf is the host of an address, or "a page".
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a page"
	}
	return cmp.Or(u.Hostname(), "a page")
}

// relative is a path as it is in the working folder, if it is there.
func relative(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	folder, err := filepath.Abs(".")
	if err != nil {
		return path
	}
	if inside, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return path
}
