package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"arizuko/deploy/agents/internal/paragraphs"
	"arizuko/deploy/agents/internal/title"
	"arizuko/deploy/agents/internal/turn"
	"arizuko/pkg/agentproto"
)

// maxSaid is how much of a turn's texts is kept, in bytes. An answer has at most agentproto.MaxResult.
const maxSaid = 16 << 20

// maxTexts bounds the number of a turn's texts. Further ones become a part of the last one.
const maxTexts = 10_000

// Limits of the tool calls that are kept of a turn. Further calls are not shown.
const (
	maxCalls  = 10_000
	maxPrompt = 100      // calls before which the text is shown at once
	maxInputs = 16 << 20 // of all inputs, in bytes
	maxKept   = 1 << 10  // of a title, in bytes
)

// said are the texts that the model has written in a turn, oldest first.
type said struct {
	texts   []*strings.Builder
	size    int
	message string // the agent's id of the last one's message
	closed  bool   // the next piece begins another text
}

// add adds a piece of a message of the model. One without an id goes on with the last one's message.
func (s *said) add(message, piece string) {
	if piece = agentproto.Truncate(piece, maxSaid-s.size); piece == "" {
		return
	}
	message = cmp.Or(message, s.message)
	if len(s.texts) == 0 || (s.closed || message != s.message) && len(s.texts) < maxTexts {
		s.texts = append(s.texts, &strings.Builder{})
	}
	s.message, s.closed = message, false
	s.size += len(piece)
	s.texts[len(s.texts)-1].WriteString(piece)
}

// whole is all of it.
func (s *said) whole() string {
	texts := make([]string, len(s.texts))
	for i, text := range s.texts {
		texts[i] = text.String()
	}
	return paragraphs.Join(texts)
}

// shown is the state of the running turn as events have shown it.
type shown struct {
	textAt     time.Time
	unshown    bool // there is more text than was shown
	used       agentproto.Usage
	costBefore float64         // of the session, in US dollars
	calls      map[string]tool // of tools, by their ids in events
	inputs     int             // the size of their inputs
}

type tool struct {
	agentproto.Tool
	input  json.RawMessage
	unkept bool // it has an input that is too large to be kept
}

// keep keeps the input of a call, if there is room for it.
func (s *shown) keep(t *tool, input json.RawMessage) {
	s.inputs -= len(t.input)
	t.input, t.unkept = nil, s.inputs+len(input) > maxInputs
	if !t.unkept {
		t.input, s.inputs = input, s.inputs+len(input)
	}
}

// update has the parts of a session/update that are used. The kind says which fields it has; those of other kinds are
// not looked at, so that nothing can pass for another kind by its shape.
type update struct {
	SessionID string `json:"sessionId"`
	Update    struct {
		Kind string `json:"sessionUpdate"`

		MessageID string          `json:"messageId"`
		Content   json.RawMessage `json:"content"`

		ToolCallID string          `json:"toolCallId"`
		Title      *string         `json:"title"`
		ToolKind   *string         `json:"kind"`
		Status     *string         `json:"status"`
		RawInput   json.RawMessage `json:"rawInput"`

		Entries []agentproto.Step `json:"entries"`

		Used number `json:"used"`
		Size number `json:"size"`
		Cost *struct {
			Amount   number `json:"amount"` // of the session so far
			Currency string `json:"currency"`
		} `json:"cost"`
	} `json:"update"`
}

// update shows the agent's work on the running turn. Only updates of the session after the prompt belong to the turn:
// the rest is the replay of a session that was loaded, or of an earlier turn. Unreadable ones are left out. Before the
// agent has named its session, all updates are of that one.
func (r *run) update(params json.RawMessage) error {
	var u update
	_ = json.Unmarshal(params, &u) // fields of another form are left out
	if r.session != "" && u.SessionID != r.session {
		return nil
	}
	w := r.running
	if cost := u.Update.Cost; u.Update.Kind == "usage_update" && cost != nil && cost.Currency == "USD" {
		r.sayCost(max(float64(cost.Amount), 0))
	}
	if w == nil || !w.prompted || w.dropped {
		r.past(&u)
		return nil
	}
	if w.response != nil && len(w.steers) == 0 {
		w.awaitMore()
	}
	switch u.Update.Kind {
	case "agent_message_chunk":
		return r.showChunk(u)
	case "tool_call", "tool_call_update":
		return r.showTool(u)
	case "plan":
		return r.showPlan(u)
	case "usage_update":
		w.shown.used.ContextUsed, w.shown.used.ContextSize = u.Update.Used.count(), u.Update.Size.count()
		w.shown.used.CostUSD = max(r.cost.now-w.shown.costBefore, 0)
		return r.running.Emit(agentproto.Event{Usage: &w.shown.used})
	case "agent_thought_chunk":
		w.said.closed = true
		return w.Alive()
	}
	return nil
}

// past handles an update of no turn. The next prompt waits until the agent says nothing more of the past.
func (r *run) past(u *update) {
	switch u.Update.Kind {
	case "agent_message_chunk":
		if r.running == nil {
			var block contentBlock
			_ = json.Unmarshal(u.Update.Content, &block)
			r.log("said after the end of the turn, and not shown: %s", agentproto.Truncate(block.Text, maxNoise))
		}
		r.late = true
	case "user_message_chunk", "tool_call", "tool_call_update", "plan":
		r.late = true
	}
}

func (r *run) showChunk(u update) error {
	w := r.running
	var block contentBlock
	_ = json.Unmarshal(u.Update.Content, &block) // other content is not shown
	if block.Type != "text" || block.Text == "" {
		return nil
	}
	w.said.add(u.Update.MessageID, block.Text)
	w.shown.unshown = true
	if time.Since(w.shown.textAt) < turn.TextInterval {
		return nil
	}
	return r.showText()
}

// showText shows all that the model has written in the turn, if there is more than was shown.
func (r *run) showText() error {
	w := r.running
	if !w.shown.unshown {
		return nil
	}
	err := r.running.Emit(agentproto.Event{Text: new(r.cfg.secrets.Growing(w.said.whole()))})
	w.shown.textAt, w.shown.unshown = time.Now(), false // after it: a slow machine is not kept busy with texts alone
	return err
}

// toolStatuses are those of the protocol.
var toolStatuses = map[string]agentproto.ToolStatus{
	"pending": agentproto.ToolPending, "in_progress": agentproto.ToolRunning, "completed": agentproto.ToolDone,
	"failed": agentproto.ToolFailed,
}

// showTool shows a call of a tool, and ends the text before it. Some agents say of a call only that it has ended.
func (r *run) showTool(u update) error {
	w := r.running
	if u.Update.ToolCallID == "" {
		return nil
	}
	if len(w.shown.calls) < maxPrompt || time.Since(w.shown.textAt) >= turn.TextInterval {
		if err := r.showText(); err != nil {
			return err
		}
	}
	w.said.closed = true
	if w.shown.calls == nil {
		w.shown.calls = map[string]tool{}
	}
	id := shortID(u.Update.ToolCallID)
	t, known := w.shown.calls[id]
	if !known && len(w.shown.calls) >= maxCalls {
		return nil
	}
	if !known {
		t.Tool = agentproto.Tool{ID: id, Status: agentproto.ToolPending}
	}
	if u.Update.Title != nil {
		t.Title = agentproto.Truncate(*u.Update.Title, maxKept)
	}
	if u.Update.ToolKind != nil {
		t.Kind = agentproto.Truncate(*u.Update.ToolKind, agentproto.MaxTitle)
	}
	if u.Update.Status != nil {
		t.Status = cmp.Or(toolStatuses[*u.Update.Status], t.Status)
	}
	if has(u.Update.RawInput) {
		w.shown.keep(&t, u.Update.RawInput)
	}
	t.Title = cmp.Or(t.Title, t.Kind, "a tool")
	w.shown.calls[id] = t
	shown := t.Tool
	shown.Title, shown.Input = r.cfg.redact(t.forUsers()),
		agentproto.Truncate(r.cfg.redact(title.Input(t.input)), agentproto.MaxInput)
	return r.running.Emit(agentproto.Event{Tool: &shown})
}

// forUsers is the title that all users of the chat read. Most agents make the title of some kinds from the call's
// input: a command, an address or a pattern, which may hold a secret. A user who is asked to allow a call reads it
// whole.
func (t *tool) forUsers() string {
	var args struct {
		Command     json.RawMessage `json:"command"`
		Description string          `json:"description"`
	}
	_ = json.Unmarshal(t.input, &args)
	switch {
	case t.Kind == "execute", has(args.Command):
		return cmp.Or(args.Description, title.Command)
	case t.Kind == "fetch":
		return "Fetch a page"
	case t.Kind == "search":
		return "Search"
	}
	return title.WithoutKeys(t.Title)
}

// shortID is an id that an event can have.
func shortID(id string) string {
	if len(id) <= agentproto.MaxToolID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

func (r *run) showPlan(u update) error {
	steps := u.Update.Entries[max(0, len(u.Update.Entries)-agentproto.MaxSteps):]
	for i := range steps {
		steps[i].Content = r.cfg.redact(steps[i].Content)
	}
	return r.running.Emit(agentproto.Event{Plan: &agentproto.Plan{Entries: steps}})
}

// showResult shows the tokens that the agent reports at the end of a turn.
func (r *run) showResult(result promptResult) error {
	used := &r.running.shown.used
	switch {
	case result.Usage != nil:
		used.Input = result.Usage.Input.count() + result.Usage.CacheRead.count() + result.Usage.CacheWrite.count()
		used.Output = result.Usage.Output.count()
	default:
		used.Input, used.Output = result.Meta.Quota.Tokens.Input.count(), result.Meta.Quota.Tokens.Output.count()
	}
	if *used == (agentproto.Usage{}) {
		return nil
	}
	return r.running.Emit(agentproto.Event{Usage: used})
}
