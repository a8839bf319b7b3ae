// Package permission makes what users are asked before an agent may use a tool.
package permission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
)

// Options of a permission request. There is none for good: what is allowed is one input, once.
const (
	AllowOnce = "Allow once"
	Deny      = "Deny"
)

// Values of a setting that says what to do about tools that need a permission.
const (
	SettingAsk  = "ask"
	SettingDeny = "deny"
)

// Request is a use of a tool that users are asked about.
type Request struct {
	Hash     string // of the tool and its exact input
	shown    string
	question string
}

// New makes a request of a tool with its input in JSON, which users see below the question. The hash depends neither on
// the order of keys nor on white space.
func New(question, tool string, input json.RawMessage) (Request, error) {
	r := Request{question: question}
	var err error
	r.Hash, r.shown, err = exactInput(tool, input)
	return r, err
}

// Ask is the question to users. It is the same in the next attempt at the turn, which gets the answer that is stored;
// count is how many uses with the same hash the turn has had, and makes another question of each.
func (r *Request) Ask(count int, redact func(string) string) agentproto.Ask {
	return agentproto.Ask{
		ID: fmt.Sprintf("tool-%.16s-%d", r.Hash, count), Question: redact(r.question), Detail: redact(r.shown),
		Options: []string{AllowOnce, Deny}, PayloadHash: r.payloadHash(),
	}
}

func (r *Request) payloadHash() string { return "sha256:" + r.Hash }

// Allowed reports whether users have allowed exactly this use.
func (r *Request) Allowed(a agentproto.Answer) bool {
	return a.Option == AllowOnce && a.Reason == agentproto.AskAnswered && a.PayloadHash == r.payloadHash()
}

// exactInput returns the hash of a tool with its input, and the input as users see it: JSON, in which no text can pass
// for another field.
func exactInput(tool string, input json.RawMessage) (hash, shown string, err error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "", "", fmt.Errorf("input of %s: %w", tool, err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if isShallow(input) {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(map[string]any{"tool": tool, "input": value}); err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(out.Bytes())
	out.Reset()
	if err := encoder.Encode(value); err != nil {
		return "", "", err
	}
	return hex.EncodeToString(sum[:]), out.String(), nil
}

// maxIndented is how deep an input may be to be shown with its fields below each other: of a deeper one the white space
// would take more memory than there is.
const maxIndented = 50

// isShallow reports whether JSON that is valid is not too deep to be indented.
func isShallow(input []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(input); i++ {
		switch c := input[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxIndented {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}
