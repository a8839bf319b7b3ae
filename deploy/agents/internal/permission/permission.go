// Package permission makes the questions that users are asked before an agent may use a tool.
package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
)

// Options of a permission request. There is none for good: users allow one input, once. Gated adds its own for what
// repeats, and answers with AllowOnce then.
const (
	AllowOnce = "Allow once"
	Deny      = "Deny"
)

// Values of a setting for tools that need a permission.
const (
	SettingAsk  = "ask"
	SettingDeny = "deny"
)

// CheckSetting returns an error unless a variable has one of these values.
func CheckSetting(variable, value string) error {
	if value != SettingAsk && value != SettingDeny {
		return fmt.Errorf("%s: want %s or %s", variable, SettingAsk, SettingDeny)
	}
	return nil
}

// Request is a use of a tool that users are asked about.
type Request struct {
	Hash     string // of the page below the question
	shown    string
	question string
}

// Field is a part of a request. Its value is JSON, or the agent's own words, which stand in quotes.
type Field struct {
	Name  string
	Value json.RawMessage
	Words string
}

// New makes a request to use a tool. Users see all of its fields, with the name of the tool first, and the hash covers
// exactly this page: two requests that differ never look the same. Neither the order of keys nor white space of the
// JSON makes a difference.
func New(question string, fields ...Field) (Request, error) {
	r := Request{question: question}
	var p page
	for _, f := range fields {
		var value any = words(f.Words)
		var err error
		if f.Words == "" {
			if value, err = parse(f.Value); err != nil {
				return r, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		p.put("", f.Name+":", value)
	}
	r.shown = p.String()
	sum := sha256.Sum256([]byte(r.shown))
	r.Hash = hex.EncodeToString(sum[:])
	return r, nil
}

// Quoted is a name in the agent's words for a question, shortened: all of it stands below.
func Quoted(name string) string {
	if short := agentproto.Truncate(name, maxName); short != name {
		name = short + "…"
	}
	return marshal(name)
}

// maxName bounds a name in a question, in bytes.
const maxName = 100

// Ask is the question to users. It is the same in the next attempt at the turn, which gets the answer that is stored;
// count is how many uses with the same hash the turn has had, and makes another question of each.
func (r *Request) Ask(count int, redact func(string) string) agentproto.Ask {
	return agentproto.Ask{
		ID: fmt.Sprintf("tool-%.16s-%d", r.Hash, count), Question: redact(r.question), Detail: redact(r.shown),
		Options: []string{AllowOnce, Deny}, PayloadHash: r.payloadHash(), Allow: AllowOnce,
	}
}

func (r *Request) payloadHash() string { return "sha256:" + r.Hash }

// Allowed reports whether users have allowed exactly this use.
func (r *Request) Allowed(a agentproto.Answer) bool {
	return a.Option == AllowOnce && a.Reason == agentproto.AskAnswered && a.PayloadHash == r.payloadHash()
}
