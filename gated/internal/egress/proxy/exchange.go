package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"arizuko/pkg/egress"
)

// maxPath and maxMethod bound the path and the method in a receipt, in bytes.
const (
	maxPath   = 2048
	maxMethod = 20
)

// exchange is a request on its way, or a tunnel.
type exchange struct {
	target
	p       *Proxy
	run     Run
	rules   egress.Rules
	query   egress.Request
	receipt egress.Receipt
	secrets []secret      // that the request carries
	coded   []replacement // for Basic authentication
	refresh *refresh      // of a secret that rotates; nil for none

	sent    atomic.Bool  // its header may have reached the server
	out, in atomic.Int64 // bytes of bodies

	release  func() // frees the memory of a body; nil for none
	hijacked bool   // there is no response any more
	skip     bool   // there is nothing to store
}

func (p *Proxy) newExchange(run Run, r *http.Request) *exchange {
	return &exchange{p: p, run: run, receipt: egress.Receipt{
		At: time.Now().UnixMilli(), RunID: run.ID, TurnID: run.Turn, Folder: run.Folder,
		Method: fmt.Sprintf("%.*s", maxMethod, r.Method),
	}}
}

// refusal is why a request is not sent, for the agent.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

var errTooMany = &refusal{http.StatusServiceUnavailable, "too many requests wait for an answer: try again later"}

func refuse(format string, args ...any) error {
	return &refusal{http.StatusForbidden, fmt.Sprintf(format, args...)}
}

// serve decides about a request and sends it.
func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	defer x.finish(r)
	r.Body = &upload{counted{r.Body, &x.out}, http.NewResponseController(w)}
	err := x.decide(r)
	if err == nil {
		err = x.send(w, r)
	}
	if err != nil {
		x.fail(w, err)
	}
}

// finish stores the receipt of a request that has ended.
func (x *exchange) finish(r *http.Request) {
	cause := recover()
	if x.release != nil {
		x.release()
	}
	if cause != nil {
		if cause != http.ErrAbortHandler { //nolint:errorlint // it is panicked with as it is
			x.p.Log.Error("panic while handling request", "host", x.host, "err", cause, "stack", string(debug.Stack()))
		}
		x.receipt.State, x.receipt.Reason = egress.Failed, "the answer was cut off"
		if r.Context().Err() != nil {
			x.receipt.Reason = "the agent did not wait for the answer"
		}
	}
	x.store(context.WithoutCancel(r.Context()))
	if cause != nil {
		panic(cause)
	}
}

func (x *exchange) store(ctx context.Context) {
	if x.skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	x.receipt.EndedAt, x.receipt.BytesIn, x.receipt.BytesOut = time.Now().UnixMilli(), x.in.Load(), x.out.Load()
	if err := x.put(ctx); err != nil {
		x.p.Log.Error("store the receipt of a request", "run", x.run.ID, "turn", x.run.Turn, "host", x.host, "err", err)
	}
}

func (x *exchange) put(ctx context.Context) error {
	if err := x.p.Backend.Put(ctx, &x.receipt); err != nil {
		return fmt.Errorf("store the receipt: %w", err)
	}
	return nil
}

// fail answers a request that is refused or that failed.
func (x *exchange) fail(w http.ResponseWriter, err error) {
	status, state := http.StatusBadGateway, egress.Failed
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		status, state = refused.status, egress.Refused
	case errors.Is(err, errAddress):
		status, state = http.StatusForbidden, egress.Refused
	}
	reason := x.scrub(err.Error())
	if state == egress.Failed && x.receipt.State == egress.Sending {
		reason += map[bool]string{false: " (it was not sent)", true: " (it may have arrived)"}[x.sent.Load()]
	}
	x.receipt.State, x.receipt.Reason = state, reason
	if !x.hijacked {
		answer(w, status, reason)
	}
}

func (x *exchange) setRule(rule *egress.Rule) {
	if rule != nil {
		x.receipt.RuleID, x.receipt.Rule = rule.ID, rule.String()
	}
}

// decide returns nil for a request that may be sent.
func (x *exchange) decide(r *http.Request) error {
	x.receipt.Host, x.receipt.Port, x.receipt.Path = x.host, x.port, shownPath(r.URL)
	if err := x.checkForm(r); err != nil {
		return err
	}
	var err error
	if x.rules, err = x.p.Backend.Rules(r.Context()); err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	x.query = egress.Request{Folder: x.run.Folder, Host: x.host, Port: x.port, Method: r.Method}
	if plain, ok := egress.PlainPath(r.URL.EscapedPath()); ok {
		x.query.Path = plain
	} else if x.pathMatters() {
		return refuse("the path is not in its plain form, and rules about %s look at paths: write it without "+
			"empty segments, dots and escaped slashes", x.host)
	}
	rule := x.rules.For(&x.query)
	x.setRule(rule)
	if rule != nil && rule.Action == egress.Deny {
		return refuse("a rule forbids %s %s%s", r.Method, x.host, x.query.Path)
	}
	if err := x.findSecrets(r); err != nil {
		return err
	}
	if rule == nil || rule.Action == egress.Ask {
		return x.ask(r)
	}
	return nil
}

// checkForm refuses what a server may take for something else than the rules do.
func (x *exchange) checkForm(r *http.Request) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-"
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace || strings.Trim(r.Method, letters) != "" ||
		len(r.Method) > maxMethod {
		return refuse("the method %.20q is not allowed", r.Method)
	}
	to, ok := parseAuthority(r.Host, x.port)
	if !ok || to.host != x.host || to.port != x.port {
		return refuse("the Host header %.260q is not the host that the connection is for, %s", r.Host, x.host)
	}
	for _, protocol := range r.Header.Values("Upgrade") {
		if !strings.EqualFold(protocol, "websocket") || r.Method != http.MethodGet {
			return refuse("the upgrade to %.40q is not allowed", protocol)
		}
	}
	for _, name := range []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Url",
		"X-Rewrite-Url"} {
		if r.Header.Get(name) != "" {
			return refuse("%s is not allowed: send the request with its own method and path", name)
		}
	}
	return nil
}

// pathMatters reports whether a rule about the host looks at paths.
func (x *exchange) pathMatters() bool {
	return slices.ContainsFunc(x.rules, func(r *egress.Rule) bool { return r.Path != "" && r.MatchesHost(&x.query) })
}

var parameterValue = regexp.MustCompile(`=[^&]*`)

// shownPath is a path as receipts have it.
func shownPath(u *url.URL) string {
	shown := u.EscapedPath()
	if u.RawQuery != "" {
		shown += "?" + parameterValue.ReplaceAllString(u.RawQuery, "=…")
	}
	if len(shown) > maxPath {
		shown = strings.ToValidUTF8(shown[:maxPath], "") + "…"
	}
	return shown
}

// ask has a user asked about a request, whose body is read first.
func (x *exchange) ask(r *http.Request) error {
	if err := x.p.checkLiteral(x.host); err != nil {
		return err
	}
	if len(r.URL.EscapedPath()) > maxPath {
		return refuse("nothing allows this request, and its path is too long to ask about")
	}
	release, free := x.p.acquire(-x.run.ID, maxAsked)
	if !free {
		return errTooMany
	}
	defer release()
	body, err := x.readBody(r)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(body)
	x.receipt.State, x.receipt.BodyHash = egress.Asked, hex.EncodeToString(hash[:])
	x.receipt.BytesOut = int64(len(body))
	if err := x.put(r.Context()); err != nil {
		return err
	}
	allowed, reason, err := x.p.Backend.Ask(r.Context(), x.run, &x.receipt, r.URL.RawQuery, body)
	switch {
	case r.Context().Err() != nil:
		return refuse("the agent did not wait for the answer")
	case err != nil:
		return &refusal{http.StatusBadGateway, "no user could be asked: " + err.Error()}
	case !allowed:
		return refuse("%s", reason)
	}
	return nil
}

// readBody reads a body that a user is asked about, and replaces it.
func (x *exchange) readBody(r *http.Request) ([]byte, error) {
	tooLarge := refuse("nothing allows this request, and its body is too large to ask about: more than %d MiB. "+
		"An operator can add a rule for %s", maxAskBody>>20, x.host)
	size := r.ContentLength
	if size < 0 {
		size = maxAskBody
	}
	if size > maxAskBody {
		return nil, tooLarge
	}
	if !x.p.bodies.TryAcquire(size) {
		return nil, errTooMany
	}
	x.release = func() { x.p.bodies.Release(size) }
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAskBody+1))
	switch {
	case err != nil:
		return nil, refuse("the body could not be read: %v", err)
	case len(body) > maxAskBody:
		return nil, tooLarge
	}
	x.p.bodies.Release(size - int64(len(body)))
	size = int64(len(body))
	setBody(r, body)
	return body, nil
}

// setBody makes a body that is known that of a request.
func setBody(r *http.Request, body []byte) {
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding, r.Trailer = int64(len(body)), nil, nil
	r.Header.Del("Expect")
}
