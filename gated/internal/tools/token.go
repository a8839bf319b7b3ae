package tools

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// tokenBytes is the size of a token before it is encoded.
const tokenBytes = 32

// Tokens are the tokens of live runs. They exist in memory alone: a restart of gated
// ends all runs. The zero value is empty.
type Tokens struct {
	mu   sync.Mutex
	live map[[sha256.Size]byte]*Access
}

// Access is the access to the tools on behalf of one run, which has its token.
type Access struct {
	tokens   *Tokens
	run      msg.Run
	token    string
	redact   func(string) string
	capacity *capacity
	acting   chan struct{}   // holds one value while a call acts
	ctx      context.Context //nolint:containedctx // of all its calls; ends with the run
	cancel   context.CancelFunc

	mu     sync.Mutex
	before func(context.Context) error // a call waits for it first; nil for nothing
	turn   int64                       // the turn at work, 0 for none
	config groupconfig.Config          // of the group, for this attempt at a turn
	acted  map[int64]map[string]int    // turn → calls that acted in this attempt, by hash
}

// Issue makes a token for a run. redact hides the run's secrets in texts that it writes. The
// caller closes the Access with the run.
func (t *Tokens) Issue(run msg.Run, redact func(string) string) *Access {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails
	ctx, cancel := context.WithCancel(context.Background())
	a := &Access{
		tokens: t, run: run, token: base64.RawURLEncoding.EncodeToString(secret), redact: redact,
		capacity: newCapacity(), acting: make(chan struct{}, 1), ctx: ctx, cancel: cancel,
		acted: map[int64]map[string]int{},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == nil {
		t.live = map[[sha256.Size]byte]*Access{}
	}
	t.live[sha256.Sum256([]byte(a.token))] = a
	return a
}

// Find returns the access of a request's bearer token, nil if no live run has it.
func (t *Tokens) Find(r *http.Request) *Access {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Looked up by its hash, so that the time of a lookup says nothing about a token.
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	a := t.live[hash]
	t.mu.Unlock()
	if a == nil || !strings.EqualFold(scheme, "Bearer") ||
		subtle.ConstantTimeCompare([]byte(a.token), []byte(token)) != 1 {
		return nil
	}
	return a
}

// Token is the bearer token.
func (a *Access) Token() string { return a.token }

// Tools are the names of the tools.
func (a *Access) Tools() []string { return slices.Clone(toolNames()) }

// toolNames makes the registry once: each tool's schema is derived from its types.
var toolNames = sync.OnceValue(func() (names []string) {
	for _, tool := range Registry() {
		names = append(names, tool.Name)
	}
	return names
})

// Close makes the token invalid and ends its calls. It may be called more than once.
func (a *Access) Close() {
	a.tokens.mu.Lock()
	delete(a.tokens.live, sha256.Sum256([]byte(a.token)))
	a.tokens.mu.Unlock()
	a.cancel()
}

// Begin begins an attempt at a turn, by the group's configuration.
func (a *Access) Begin(turn int64, c *groupconfig.Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.acted, turn)
	a.config = *c
}

// BeforeCalls sets a function that each call waits for before it is attributed to the turn at work.
func (a *Access) BeforeCalls(wait func(context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = wait
}

// await waits for the function of BeforeCalls. It returns the error of ctx.
func (a *Access) await(ctx context.Context) error {
	a.mu.Lock()
	wait := a.before
	a.mu.Unlock()
	if wait == nil {
		return nil
	}
	return wait(ctx)
}

// SetTurn says which turn the run works on: its oldest unanswered one, 0 for none. Calls
// are on behalf of that turn.
func (a *Access) SetTurn(turn int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = turn
}

// atWork is the turn of a call that begins now, 0 for none, with the configuration of its group.
func (a *Access) atWork() (turn int64, c groupconfig.Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turn, a.config
}

// actedBefore is how many calls with a hash have acted in this attempt at a turn.
func (a *Access) actedBefore(turn int64, hash string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acted[turn][hash]
}

// noteActed counts a call that has acted.
func (a *Access) noteActed(turn int64, hash string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.acted[turn] == nil {
		a.acted[turn] = map[string]int{}
	}
	a.acted[turn][hash]++
}
