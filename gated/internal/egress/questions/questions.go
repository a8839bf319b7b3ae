// Package questions asks users about requests of agents that no rule decides. It runs in gated; the proxy, another
// process, calls it with the receipt of a request until there is an answer. All that it knows is in the rows of asks:
// a question's id there names the request, so that any process may go on with it.
package questions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/endpoint"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/egress"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// Path is where the proxy asks by POST.
	Path = "/v1/egress/questions"
	// maxOpen is how many questions of a turn are open at once; further requests wait.
	maxOpen = 3
	// look is how long a call waits for an answer. The proxy then calls again.
	look = 4 * time.Second
)

// Request is what the proxy asks about.
type Request struct {
	Receipt int64 // the row of the request
	Turn    int64
	egress.Request
	Query     string // as it was sent; secrets are tokens
	Secret    string // the name of the one whose token the request has, "" for none
	Waits     int64  // the question that the last call has waited for, 0 for none
	BodyHash  string // SHA-256 in hex
	BodyBytes int64
	Excerpt   string // the body, or its beginning, if that is a text
}

// Answer is what became of it.
type Answer struct {
	Pending bool // there is no answer yet: call again
	Allowed bool
	Reason  string // why not, for the agent
	By      string // the sender who answered, "" for none
	Ask     int64  // the question, 0 for none
}

// Asker puts questions to users and waits for their answers: agents.Asks.
type Asker interface {
	Ask(t *msg.Turn, q *rows.Question, problem error, redact func(string) string) (*msg.Ask, error)
	AwaitAsk(ctx context.Context, id int64) (*msg.Ask, error)
}

// Questions answers the proxy.
type Questions struct {
	Store  *store.Store
	Asks   Asker
	Redact func(string) string // hides secrets

	mu sync.Mutex // held while a request finds the questions before it, so that those of a moment join one
}

// Mount adds the path.
func (q *Questions) Mount(r chi.Router) {
	r.Post(Path, endpoint.Handler(http.StatusOK, func(r *http.Request) (any, error) {
		in, err := httpx.Decode[Request](r)
		if err != nil {
			return nil, err
		}
		return q.ask(r.Context(), &in)
	}))
}

func (q *Questions) ask(ctx context.Context, in *Request) (*Answer, error) {
	answer, err := q.answer(ctx, in)
	if err != nil || !answer.Pending {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	if _, err := q.Asks.AwaitAsk(ctx, answer.Ask); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return answer, nil
}

// answer is that of now. If there is none, and no question to wait for, it asks.
func (q *Questions) answer(ctx context.Context, in *Request) (*Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn, err := q.Store.Turn(ctx, in.Turn)
	switch {
	case err != nil:
		return nil, err
	case turn == nil || turn.State != msg.TurnRunning:
		return &Answer{Reason: "the turn has ended, so there is no one to ask"}, nil
	}
	known, err := q.Store.TurnAsks(ctx, turn.ID)
	if err != nil {
		return nil, err
	}
	if answer := cmp.Or(judge(known, in), waitsFor(known, in)); answer != nil {
		return answer, nil
	}
	return q.put(turn, in)
}

// Options of a question, in their order.
const (
	once = iota
	thisTurn
	always
	no
)

// options are the texts of the options.
func options() []string { return []string{"Once", "For this turn", msg.EgressAlways, "No"} }

// judge finds the answer to a request among the questions of its turn: to its own, to the one that it has waited for,
// or to one about a request of the same kind that was answered for the whole turn. It is nil for none.
func judge(known []*msg.Ask, in *Request) *Answer {
	for _, a := range slices.Backward(known) {
		kind, receipt, ours := parseID(a.AskID)
		own, chosen := receipt == in.Receipt, slices.Index(options(), a.Option)
		waited := own || a.ID == in.Waits
		switch {
		case !ours:
		case own && a.State == msg.AskOpen:
			return &Answer{Pending: true, Ask: a.ID}
		case waited && a.State == msg.AskExpired && a.EndedAt >= a.ExpiresAt:
			return &Answer{Ask: a.ID, Reason: "no user answered in time"}
		case own && a.State == msg.AskExpired:
			return &Answer{Ask: a.ID, Reason: "the question could not be delivered, or was deleted"}
		case kind != kindOf(in):
		case chosen == thisTurn, chosen == always && waited, chosen == once && own: // a rule may be gone again
			return &Answer{Ask: a.ID, Allowed: true, By: a.AnsweredBy}
		case chosen == no:
			return &Answer{Ask: a.ID, By: a.AnsweredBy, Reason: "a user refused it, for this turn"}
		}
	}
	return nil
}

// waitsFor is an open question that has to end first: about a request of the same kind, or one of too many. It is nil
// for none.
func waitsFor(known []*msg.Ask, in *Request) *Answer {
	var open []*msg.Ask
	for _, a := range known {
		kind, _, ours := parseID(a.AskID)
		if !ours || a.State != msg.AskOpen {
			continue
		}
		if kind == kindOf(in) {
			return &Answer{Pending: true, Ask: a.ID}
		}
		open = append(open, a)
	}
	if len(open) < maxOpen {
		return nil
	}
	return &Answer{Pending: true, Ask: open[0].ID}
}

// put asks. That no user may answer is said at once.
func (q *Questions) put(turn *msg.Turn, in *Request) (*Answer, error) {
	line := (&egress.Receipt{Method: in.Method, Host: in.Host, Port: in.Port, Path: in.Path}).Request()
	asked, err := q.Asks.Ask(turn, &rows.Question{
		AskID: idOf(in), Question: fmt.Sprintf("Allow %s (%d bytes)?", line, in.BodyBytes), Detail: in.detail(),
		Options: in.options(), PayloadHash: in.hash(), About: groupconfig.Subject{Host: in.Host},
	}, nil, q.Redact)
	switch kind := apierr.KindOf(err); {
	case err == nil:
		return &Answer{Pending: true, Ask: asked.ID}, nil
	case kind == apierr.Unavailable:
		return nil, err
	}
	return &Answer{Reason: "no rule allows it, and no user can be asked: " + err.Error()}, nil
}

// options are those of a request: a rule is none of them if it can't match.
func (in *Request) options() []string {
	if _, ok := egress.Always(&in.Request); !ok {
		return slices.Delete(options(), always, always+1)
	}
	return options()
}

// detail is what a question says besides. What the agent has written comes last, so that it cannot pass for the rest.
func (in *Request) detail() string {
	var lines []string
	if rule, ok := egress.Always(&in.Request); ok {
		lines = append(lines, "Always allows "+rule.String())
	}
	if in.Secret != "" {
		lines = append(lines, "secret: "+in.Secret)
	}
	if in.Query != "" {
		lines = append(lines, "query: "+in.Query)
	}
	switch shown := int64(len(in.Excerpt)); {
	case in.BodyBytes == 0:
	case shown == 0:
		lines = append(lines, "body: no text, SHA-256 "+in.BodyHash)
	case shown < in.BodyBytes:
		lines = append(lines, fmt.Sprintf("body (SHA-256 %s), the first %d bytes: %s", in.BodyHash, shown, in.Excerpt))
	default:
		lines = append(lines, "body: "+in.Excerpt)
	}
	return strings.Join(lines, "\n")
}

// hash is of all that a user allows once.
func (in *Request) hash() string {
	return hashOf(in.Method, in.Host, strconv.Itoa(in.Port), in.Path, in.Query, in.BodyHash)
}

func hashOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// kindOf is the same for requests that one answer may allow. It is not shortened: agents choose what is hashed, and may
// look for two requests with the same beginning of it.
func kindOf(in *Request) string {
	return hashOf(in.Method, in.Host, strconv.Itoa(in.Port), egress.Beside(in.Path), in.Secret)
}

// idOf is the id of a request's question: the prefix, its kind and the receipt's id.
func idOf(in *Request) string {
	return fmt.Sprintf("%s%s:%d", msg.AskEgress, kindOf(in), in.Receipt)
}

func parseID(id string) (kind string, receipt int64, ok bool) {
	rest, ok := strings.CutPrefix(id, msg.AskEgress)
	kind, number, _ := strings.Cut(rest, ":")
	receipt, err := strconv.ParseInt(number, 10, 64)
	return kind, receipt, ok && err == nil
}
