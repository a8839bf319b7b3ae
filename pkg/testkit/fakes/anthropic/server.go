// Package anthropic is a fake of the Anthropic API, as Claude Code calls it: POST /v1/messages, also
// as a stream of events, with the documented errors. There is no language model: the answer is a
// function of the request, see [FollowCommand] and [Server.SetModel].
//
//	model := anthropic.New(anthropic.Options{})
//	base, err := model.Start("127.0.0.1:0")
//	model.InjectFault(anthropic.Fault{Status: 529, Times: 2})
//	call, err := model.Wait(ctx, func(c anthropic.Call) bool { return c.Accepted })
package anthropic

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// DefaultKey is the key of Options without one.
const DefaultKey = "sk-ant-fake-0001-key-of-the-fake-model"

// MethodMessages is the method of the API, as in Call and Fault.
const MethodMessages = "messages"

// Options of a fake.
type Options struct {
	Key string // the accepted key, in x-api-key or as a bearer token; DefaultKey if empty
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	fakeserver.Host
	*fakeserver.Record[Call]
	*fakeserver.Faults[Fault]
	key string

	mu     sync.Mutex
	answer func(Request) Reply
}

// New returns a fake that follows commands.
func New(o Options) *Server {
	if o.Key == "" {
		o.Key = DefaultKey
	}
	return &Server{
		Record: fakeserver.NewRecord(func(*Call) bool { return true }),
		Faults: fakeserver.NewFaults((*Fault).matches, (*Fault).prepare),
		key:    o.Key, answer: FollowCommand,
	}
}

// Key is the accepted key.
func (s *Server) Key() string { return s.key }

// SetModel makes model answer from now on; nil is [FollowCommand].
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
	return s.StartWith(addr, s)
}

// ServeHTTP answers the API's method; anything else is not found, and recorded.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.AbortIfUnreachable()
	x := s.begin(w, r)
	defer x.end() // a handler that aborts panics
	fault := s.NextFault(x.call.Method)
	if !fault.After {
		x.pause(fault.Delay)
		if x.answerFault(fault) {
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
	w     http.ResponseWriter
	r     *http.Request
	call  Call // as it came in
	index int  // in the record
}

// serve carries the request out. An error that it returns has not been answered yet.
func (x *exchange) serve(fault Fault) error {
	if err := x.admit(); err != nil {
		return err
	}
	if x.call.Method == MethodMessages {
		return x.messages(fault)
	}
	return refusal(http.StatusNotFound, "Not found")
}

// admit checks the headers.
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
		err = request.check()
	}
	if err != nil {
		return err
	}
	x.note(func(c *Call) { c.Request, c.Command = request, request.command() })
	x.mu.Lock()
	answer := x.answer
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
	if !x.answerFault(fault) {
		x.json(http.StatusOK, x.message(request, reply))
	}
	return nil
}

// pause delays the answer, and aborts if the caller goes away meanwhile.
func (x *exchange) pause(d time.Duration) { x.Hold(x.r.Context(), d) }

// refuse answers with an error.
func (x *exchange) refuse(err error) {
	refused := asRefused(err)
	if refused.retryAfter > 0 {
		x.w.Header().Set("retry-after", fmt.Sprint(refused.retryAfter))
	}
	if !refused.resetAt.IsZero() { // undocumented: as Claude Code reads them
		x.w.Header().Set("anthropic-ratelimit-unified-status", "rejected")
		x.w.Header().Set("anthropic-ratelimit-unified-representative-claim", "five_hour")
		x.w.Header().Set("anthropic-ratelimit-unified-reset", fmt.Sprint(refused.resetAt.Unix()))
	}
	x.json(refused.status, refused.body(x.requestID()))
}

func (x *exchange) json(status int, v any) {
	x.note(func(c *Call) { c.Status = status })
	x.setRequestID()
	fakeserver.WriteJSON(x.w, "application/json", status, v)
}

// setRequestID sets the header that every answer has.
func (x *exchange) setRequestID() { x.w.Header().Set("request-id", x.requestID()) }

func (x *exchange) requestID() string { return fmt.Sprintf("req_fake%08d", x.number()) }
