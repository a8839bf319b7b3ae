package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

type wireMessage struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
}

type usage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type toolBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// message is the answer as a whole.
func (x *exchange) message(request Request, reply Reply) wireMessage {
	reason := reply.stopReason()
	return wireMessage{
		ID: fmt.Sprintf("msg_fake%08d", x.number()), Type: "message", Role: "assistant", Model: request.Model,
		Content: x.blocks(reply), StopReason: &reason,
		Usage: usage{InputTokens: request.tokens(), OutputTokens: len(reply.Text)/4 + 1},
	}
}

func (x *exchange) blocks(reply Reply) []any {
	blocks := []any{}
	if reply.Text != "" {
		blocks = append(blocks, textBlock{"text", reply.Text})
	}
	for i, use := range reply.Tools {
		input, err := json.Marshal(use.Input)
		if err != nil {
			panic("anthropic: input of a tool: " + err.Error()) // a mistake of the test
		}
		blocks = append(blocks, toolBlock{"tool_use", fmt.Sprintf("toolu_fake%08d%02d", x.number(), i), use.Name,
			input})
	}
	return blocks
}

// event is an event of a stream. Its data repeats the name.
type event struct {
	name string
	data map[string]any
}

func newEvent(name string, fields map[string]any) event {
	data := map[string]any{"type": name}
	for key, value := range fields {
		data[key] = value
	}
	return event{name, data}
}

// stream answers with events. A fault comes after the first two events of the content.
func (x *exchange) stream(request Request, reply Reply, fault Fault) {
	x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	x.w.Header().Set("Cache-Control", "no-cache")
	x.setRequestID()
	whole := x.message(request, reply)
	begun := whole
	begun.Content, begun.StopReason, begun.Usage.OutputTokens = []any{}, nil, 1
	x.emit(newEvent("message_start", map[string]any{"message": begun}), newEvent("ping", nil))
	x.note(func(c *Call) { c.Status = http.StatusOK })
	x.pause(reply.Wait)

	rest := contentEvents(whole.Content)
	if fault.After {
		first := min(2, len(rest))
		x.emit(rest[:first]...)
		rest = rest[first:]
		x.pause(fault.Delay)
		if x.failStream(fault) {
			return
		}
	}
	x.emit(rest...)
	x.emit(
		newEvent("message_delta", map[string]any{
			"delta": map[string]any{"stop_reason": whole.StopReason, "stop_sequence": nil},
			"usage": map[string]any{"output_tokens": whole.Usage.OutputTokens},
		}),
		newEvent("message_stop", nil))
}

// pieceSize is how many bytes of a text, or of a tool's input, an event carries.
const pieceSize = 64

func contentEvents(blocks []any) (events []event) {
	add := func(name string, index int, key string, value any) {
		events = append(events, newEvent(name, map[string]any{"index": index, key: value}))
	}
	for i, block := range blocks {
		empty, text, kind, key := block, "", "text_delta", "text"
		switch b := block.(type) {
		case textBlock:
			text, b.Text = b.Text, ""
			empty = b
		case toolBlock:
			text, b.Input = string(b.Input), json.RawMessage("{}")
			empty, kind, key = b, "input_json_delta", "partial_json"
		}
		add("content_block_start", i, "content_block", empty)
		for _, piece := range pieces(text) {
			add("content_block_delta", i, "delta", map[string]any{"type": kind, key: piece})
		}
		events = append(events, newEvent("content_block_stop", map[string]any{"index": i}))
	}
	return events
}

// pieces cuts between runes. Pieces of a long text are larger: there are at most 500.
func pieces(text string) (all []string) {
	size, from := max(pieceSize, len(text)/500+1), 0
	for at := range text {
		if at-from >= size {
			all = append(all, text[from:at])
			from = at
		}
	}
	return append(all, text[from:])
}

// emit sends events. It aborts if the client is gone.
func (x *exchange) emit(events ...event) {
	for _, e := range events {
		data, err := json.Marshal(e.data)
		if err != nil {
			panic("anthropic: event: " + err.Error())
		}
		x.AbortIfUnreachable()
		if _, err := fmt.Fprintf(x.w, "event: %s\ndata: %s\n\n", e.name, data); err != nil {
			fakeserver.Abort()
		}
	}
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		fakeserver.Abort()
	}
}

// failStream ends a stream under way with a fault, and reports whether it did.
func (x *exchange) failStream(fault Fault) bool {
	switch {
	case fault.Drop:
		fakeserver.Abort()
	case fault.Body != "":
		_, _ = x.w.Write([]byte(fault.Body))
	case fault.Status != 0:
		x.emit(newEvent("error", fault.refused().body(x.requestID())))
	default:
		return false
	}
	return true
}
