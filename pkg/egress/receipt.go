package egress

import (
	"cmp"
	"fmt"
	"strings"
)

// State is how far a request is.
type State string

// The states of requests.
const (
	Asked   State = "asked"   // a user is asked
	Sending State = "sending" // it is sent, or was being sent when the proxy ended: it may have arrived
	Sent    State = "sent"    // it was answered, by Status
	Refused State = "refused" // it was not sent
	Failed  State = "failed"  // it could not be sent, or the answer could not be read
)

// States are all of them.
func States() []State { return []State{Asked, Sending, Sent, Refused, Failed} }

// Connect is the method of a connection that is not looked into.
const Connect = "CONNECT"

// Receipt is a row of egress_receipts: one request of an agent, or one connection that is not looked into. Times are
// unix ms.
type Receipt struct {
	ID     int64  `json:"id"`
	At     int64  `json:"at"`
	RunID  int64  `json:"run_id"`
	TurnID int64  `json:"turn_id,omitempty"` // 0 for none
	Folder string `json:"folder"`
	Method string `json:"method"` // Connect for a connection that is not looked into
	Host   string `json:"host"`
	Port   int    `json:"port"`
	// Path has the names of the query's parameters, not their values. It is "" for a connection.
	Path     string `json:"path,omitempty"`
	BodyHash string `json:"body_hash,omitempty"` // SHA-256 in hex; "" if it was not read whole before it was sent
	BytesOut int64  `json:"bytes_out"`
	BytesIn  int64  `json:"bytes_in"`
	Status   int    `json:"status,omitempty"` // of the answer, 0 for none
	State    State  `json:"state"`
	RuleID   int64  `json:"rule_id,omitempty"` // the rule that decided, 0 for none; it may be deleted
	Rule     string `json:"rule,omitempty"`    // as Rule.String says it
	Reason   string `json:"reason,omitempty"`  // why it was refused or failed; "" otherwise
	By       string `json:"by,omitempty"`      // who allowed or refused it, a sender; "" for a rule
	AskID    int64  `json:"ask_id,omitempty"`  // the question, 0 for none
	Secret   string `json:"secret,omitempty"`  // the name of the one whose token it had, "" for none
	// EndedAt is 0 while it is under way. One that ends while it is Sending may have arrived.
	EndedAt int64 `json:"ended_at,omitempty"`
}

// Request is what was asked for, as in "POST api.github.com/repos/acme/x/issues".
func (r *Receipt) Request() string {
	port := ""
	if r.Port != 80 && r.Port != 443 {
		port = fmt.Sprintf(":%d", r.Port)
	}
	return r.Method + " " + r.Host + port + r.Path
}

// String is the receipt on a line, as in "POST api.github.com/repos/acme/x/issues (412 bytes) → 201, allowed by
// telegram:42", or with the rule that decided, ", rule 7 (api.github.com → pass)".
func (r *Receipt) String() string {
	text := r.Request()
	if r.BytesOut > 0 {
		text += fmt.Sprintf(" (%d bytes)", r.BytesOut)
	}
	text += " → " + r.outcome()
	if r.RuleID != 0 && r.By == "" && r.State != Asked {
		text += fmt.Sprintf(", rule %d (%s)", r.RuleID, r.Rule)
	}
	return text
}

func (r *Receipt) outcome() string {
	var outcome string
	switch {
	case r.State == Asked:
		return "waits for an answer"
	case r.State == Refused && r.By != "":
		return strings.TrimSuffix("refused by "+r.By+": "+r.Reason, ": ")
	case r.State == Refused:
		return strings.TrimSuffix("refused: "+cmp.Or(r.Reason, r.Rule), ": ")
	case r.State == Failed:
		outcome = "failed: " + r.Reason
	case r.State == Sending && r.EndedAt != 0:
		outcome = "may have been sent: " + cmp.Or(r.Reason, "the proxy ended meanwhile")
	case r.Status != 0:
		outcome = fmt.Sprint(r.Status)
	case r.State == Sent:
		outcome = "sent"
	default:
		outcome = "being sent"
	}
	if r.Secret != "" {
		outcome += ", with the secret " + r.Secret
	}
	if r.By != "" {
		outcome += ", allowed by " + r.By
	}
	return outcome
}

// ForRules is what rules look at.
func (r *Receipt) ForRules() *Request {
	path, _, _ := strings.Cut(r.Path, "?")
	path, _ = PlainPath(path)
	return &Request{Folder: r.Folder, Host: r.Host, Port: r.Port, Method: r.Method, Path: path}
}
