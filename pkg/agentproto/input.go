package agentproto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Input is one line on an agent's stdin: [Start], [Message], [Answer] or [Interrupt].
type Input interface{ inputType() string }

// Start opens a run and carries its first turn.
type Start struct {
	// TurnID is the turn's number in decimal. It is a string because agents in
	// languages without 64-bit integers must be able to send it back unchanged.
	TurnID string `json:"turnId"`
	// Prompt is XML that is inert: the text of users is escaped inside it.
	Prompt string `json:"prompt"`
	// System is for the model's system prompt: where it is, what the prompt's blocks
	// mean, and the agent's abilities. It holds nothing that users wrote, and is the same for
	// all turns of a run.
	System string `json:"system,omitempty"`
	// SessionID is the agent's name for this conversation from an earlier run, or "".
	SessionID   string `json:"sessionId"`
	GroupFolder string `json:"groupFolder"`
	ChatJID     string `json:"chatJid"`
	Topic       string `json:"topic"`
	ThreadID    string `json:"threadId"`
	// EngageTopic is the place in the chat that the reply engages.
	EngageTopic string `json:"engageTopic"`
	// Surface is where the reply will be read, Ceiling a suitable length in
	// characters. Both are hints: nothing is cut.
	Surface string `json:"surface"`
	Ceiling int    `json:"ceiling"`
	// Model is the id of the model that an operator has chosen for the group; "" for the agent's own choice.
	Model string `json:"model,omitempty"`
	// MCP is where the agent's tools are served; nil when there are none.
	MCP *MCP `json:"mcp,omitempty"`
}

// MCP is an agent's access to its tools. The token is valid for one run.
type MCP struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Message is one more turn for a live run.
type Message struct {
	TurnID string `json:"turnId"`
	Prompt string `json:"prompt"`
	// Fold means that the agent may take the turn in while it works on the turns that it has not
	// answered, and answer all of them with one frame; see [Features].
	Fold bool `json:"fold,omitempty"`
}

// Interrupt makes the agent drop every turn that it has not answered yet.
type Interrupt struct{}

func (Start) inputType() string     { return "start" }
func (Message) inputType() string   { return "message" }
func (Interrupt) inputType() string { return "interrupt" }

// Encode returns in as one line, newline included.
func Encode(in Input) ([]byte, error) { return encodeTyped(lineHead{Type: in.inputType()}, in) }

// ErrUnknownType is the error of a line of a type that is not known. Later versions may add some: ignore it.
var ErrUnknownType = errors.New("agentproto: unknown input type")

// ReadInput parses one line of stdin. Unknown fields are ignored, so that an agent
// keeps working when the protocol gets new ones; an unknown type is [ErrUnknownType].
func ReadInput(line []byte) (Input, error) {
	var head struct{ Type string }
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, fmt.Errorf("agentproto: input line: %w", err)
	}
	switch head.Type {
	case "start":
		return decodeInput[Start](line)
	case "message":
		return decodeInput[Message](line)
	case "answer":
		return decodeInput[Answer](line)
	case "interrupt":
		return Interrupt{}, nil
	default:
		return nil, fmt.Errorf("%w %q", ErrUnknownType, head.Type)
	}
}

func decodeInput[T Input](line []byte) (Input, error) {
	var in T
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, fmt.Errorf("agentproto: %s line: %w", in.inputType(), err)
	}
	return in, nil
}

// encodeTyped encodes a head and the fields of body as one object.
func encodeTyped(head lineHead, body any) ([]byte, error) {
	line, err := encodeLine(head)
	if err != nil {
		return nil, err
	}
	fields, err := encodeLine(body)
	if err != nil || string(fields) == "{}\n" {
		return line, err
	}
	line = append(bytes.TrimSuffix(line, []byte("}\n")), ',')
	return append(line, fields[len("{"):]...), nil
}

// encodeLine leaves <, > and & as they are: prompts are XML, and escaping them
// a second time would make logs unreadable and lines longer.
func encodeLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("agentproto: encode: %w", err)
	}
	return buf.Bytes(), nil
}
