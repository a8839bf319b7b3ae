// Package anthropic is a fake of the model's API, as an agent's command line or SDK calls it:
// POST /v1/messages whole and as a stream of events, /v1/messages/count_tokens and /v1/models,
// over HTTP as documented, with the documented errors. No model thinks behind it: what it
// answers is a function of the request, see [FollowCommand] and [Server.SetModel].
//
//	model := anthropic.New(anthropic.Options{})
//	base, err := model.Start("127.0.0.1:0")
//	model.Fail(anthropic.Fault{Status: 529, Times: 2})
//	call, err := model.Wait(ctx, func(c anthropic.Call) bool { return c.Accepted })
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/httpx"
)

// DefaultKey is the key of Options without one.
const DefaultKey = "sk-ant-fake-0001-key-of-the-fake-model"

// Methods of the API, as Call and Fault name them.
const (
	MethodMessages    = "messages"
	MethodCountTokens = "count_tokens"
	MethodModels      = "models"
)

// Options say who may call. The zero value knows one key.
type Options struct {
	Key string // as x-api-key, or as bearer
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	key string

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, whenever something happened
	cut     chan struct{} // closed while no connection survives
	answer  func(Request) Reply
	calls   []*Call
	faults  []Fault
	http    *httpx.Server
	served  chan struct{} // closed when http is done
}

// New makes an API whose model obeys what it is told.
func New(o Options) *Server {
	if o.Key == "" {
		o.Key = DefaultKey
	}
	return &Server{key: o.Key, changed: make(chan struct{}), cut: make(chan struct{}), answer: FollowCommand}
}

// Key is the key that is let in.
func (s *Server) Key() string { return s.key }

// SetModel has model answer from now on; nil is [FollowCommand] again.
func (s *Server) SetModel(model func(Request) Reply) {
	if model == nil {
		model = FollowCommand
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = model
}

// Start serves at addr, "host:port" with port 0 for a free one, until Close, and returns the
// base of its URLs, "http://host:port". After Close it may be started again.
func (s *Server) Start(addr string) (string, error) {
	server, err := httpx.Listen(addr, s, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	s.SetReachable(true)
	served := make(chan struct{})
	s.mu.Lock()
	s.http, s.served = server, served
	s.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve() // what it could say, Close is told too
	}()
	return "http://" + server.Addr(), nil
}

// Close breaks every connection and stops serving. What happened can still be looked at.
func (s *Server) Close() error {
	s.SetReachable(false)
	s.mu.Lock()
	server, served := s.http, s.served
	s.http = nil
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // open requests are broken off, not waited for
	_ = server.Close(ctx)
	<-served
	return nil
}

// happened wakes whoever waits for news. The lock is held.
func (s *Server) happened() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP answers the API's methods; anything else is not found, and on record.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.reachable() {
		panic(http.ErrAbortHandler) // the way to close a connection without an answer
	}
	x := &exchange{Server: s, w: w, r: r, call: s.begin(r)}
	defer x.end() // a handler that aborts panics
	fault := s.nextFault(x.call.Method)
	if !fault.After {
		x.pause(fault.Delay)
		if x.spoil(fault) {
			return
		}
		fault = Fault{}
	}
	if err := x.serve(fault); err != nil {
		x.refuse(err)
	}
}

// exchange is one request and its answer.
type exchange struct {
	*Server
	w    http.ResponseWriter
	r    *http.Request
	call *Call
}

// serve carries the request out; what it returns has not been answered yet.
func (x *exchange) serve(fault Fault) error {
	if err := x.admit(); err != nil {
		return err
	}
	switch x.call.Method {
	case MethodMessages:
		return x.messages(fault)
	case MethodCountTokens:
		return x.countTokens(fault)
	case MethodModels:
		return x.models(fault)
	}
	return refusal(http.StatusNotFound, "Not found")
}

// admit looks at what every request must carry.
func (x *exchange) admit() error {
	key, bearer := x.r.Header.Get("x-api-key"), x.r.Header.Get("Authorization")
	token, isBearer := strings.CutPrefix(bearer, "Bearer ")
	switch {
	case key == "" && bearer == "":
		return refusal(http.StatusUnauthorized, "x-api-key header is required")
	case key != "" && key != x.key:
		return refusal(http.StatusUnauthorized, "invalid x-api-key")
	case key == "" && (!isBearer || token != x.key):
		return refusal(http.StatusUnauthorized, "Invalid bearer token")
	case x.r.Header.Get("anthropic-version") == "":
		return refusal(http.StatusBadRequest, "anthropic-version: header is required")
	}
	return nil
}

func (x *exchange) messages(fault Fault) error {
	request, err := readRequest(x.call)
	if err == nil {
		err = request.check(true)
	}
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.call.Request, x.call.Command = request, request.order()
	answer := x.answer
	x.happened()
	x.mu.Unlock()
	reply := answer(request)
	if reply.Status != 0 {
		x.pause(reply.Wait)
		return refusal(reply.Status, reply.Text)
	}
	x.accept()
	if request.Stream {
		x.stream(request, reply, fault)
		return nil
	}
	x.pause(reply.Wait + fault.Delay)
	if !x.spoil(fault) {
		x.json(http.StatusOK, x.message(request, reply))
	}
	return nil
}

// countTokens counts a token for four bytes, which is about right for English.
func (x *exchange) countTokens(fault Fault) error {
	request, err := readRequest(x.call)
	if err == nil {
		err = request.check(false)
	}
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.call.Request = request
	x.mu.Unlock()
	x.accept()
	x.pause(fault.Delay)
	if !x.spoil(fault) {
		x.json(http.StatusOK, map[string]int{"input_tokens": request.tokens()})
	}
	return nil
}

func (x *exchange) models(fault Fault) error {
	type model struct {
		Type        string    `json:"type"`
		ID          string    `json:"id"`
		DisplayName string    `json:"display_name"`
		CreatedAt   time.Time `json:"created_at"`
	}
	list := []model{{"model", "claude-fake-1", "Claude Fake 1", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	x.accept()
	x.pause(fault.Delay)
	if !x.spoil(fault) {
		x.json(http.StatusOK, map[string]any{"data": list, "has_more": false, "first_id": list[0].ID, "last_id": list[0].ID})
	}
	return nil
}

// pause waits, and ends the exchange if the caller goes away meanwhile.
func (x *exchange) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-x.cutting():
	case <-x.r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}

// refuse answers with an error.
func (x *exchange) refuse(err error) {
	refused := asRefused(err)
	if refused.retryAfter > 0 {
		x.w.Header().Set("retry-after", fmt.Sprint(refused.retryAfter))
	}
	x.json(refused.status, refused.body(x.requestID()))
}

func (x *exchange) json(status int, v any) {
	x.w.Header().Set("Content-Type", "application/json")
	x.head(status)
	_ = json.NewEncoder(x.w).Encode(v) // who asked is gone
}

// head sends the status and what every answer carries.
func (x *exchange) head(status int) {
	x.note(func(c *Call) { c.Status = status })
	x.w.Header().Set("request-id", x.requestID())
	x.w.WriteHeader(status)
}

func (x *exchange) requestID() string { return fmt.Sprintf("req_fake%08d", x.call.number) }
