package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/sync/semaphore"

	"arizuko/pkg/httpx"
)

// Bounds of requests, whose bodies are read only within them: so memory does not depend on what agents send.
const (
	// maxCallBody is the largest body of a request, in bytes. A text of maxText characters has 384 KiB where a client
	// escapes all of it as surrogate pairs of 12 bytes; the rest is for the other arguments.
	maxCallBody = 512 << 10
	// smallBody is the size that most bodies stay below. They take no bytes of a budget, only one of their run's slots:
	// whatever other runs send, they are not held up.
	smallBody = 16 << 10
	// maxRunBytes and maxAllBytes bound the larger bodies that are handled at once, of a run and of all runs.
	maxRunBytes = 2 * maxCallBody
	maxAllBytes = 8 * maxCallBody
	// maxConcurrentCalls bounds the requests of a run that are handled at once.
	maxConcurrentCalls = 8
	// maxQueuedCalls of a run wait for that, their bodies unread. Together with those under way and the parked ones
	// they are fewer than the connections of a sandbox's door, so that a further one is refused rather than not heard.
	maxQueuedCalls = 32
	// queueTimeout is how long they wait. With callTimeout it is below the time that httpx leaves for an answer, and
	// that clients wait for one.
	queueTimeout = 20 * time.Second
	// receiveTimeout is how long a body may take that has a slot: agents are near.
	receiveTimeout = 10 * time.Second
	// maxParkedCalls of a run wait for a user or a download, without a slot.
	maxParkedCalls = 16
	// maxParkedBody bounds the body of each, which stays in memory: a question of ask_user with all its options has
	// 19 KiB at most.
	maxParkedBody = 32 << 10
	// retryAfter is how long a refused client is to wait, in seconds.
	retryAfter = 5
)

// codeBusy is the JSON-RPC code of a request that found no room; of those that servers may choose.
const codeBusy = -32000

// Errors of requests that are refused before their bodies are read.
var (
	errBusy = errors.New("too many tool calls at once, or too large ones: nothing was done, try again in some " +
		"seconds, with fewer at once")
	errTooLarge = errors.New("a tool call has at most " + strconv.Itoa(maxCallBody>>10) + " KiB: shorten its arguments")
	errBatch    = errors.New("batches are not supported: send one request at a time")
)

// capacity is how much the requests of a run may take at once. Each run has its own; all share one budget of bytes.
type capacity struct {
	entered chan struct{} // has an element for each request under way or in the queue
	slots   chan struct{} // has an element for each request under way
	parked  chan struct{} // has an element for each call that waits for a user or a download
	bytes   *semaphore.Weighted
}

func newCapacity() *capacity {
	return &capacity{
		entered: make(chan struct{}, maxConcurrentCalls+maxQueuedCalls), slots: make(chan struct{}, maxConcurrentCalls),
		parked: make(chan struct{}, maxParkedCalls), bytes: semaphore.NewWeighted(maxRunBytes),
	}
}

// place is the share of one request, until it leaves.
type place struct {
	of   *capacity
	all  *semaphore.Weighted
	size int64 // of the body at most
	// leave gives the place back.
	leave func()
}

// take waits for a place for a request with a body of size bytes. It returns errBusy if the queue is full, or ctx ends.
func (c *capacity) take(ctx context.Context, all *semaphore.Weighted, size int64) (*place, error) {
	select {
	case c.entered <- struct{}{}:
	default:
		return nil, errBusy
	}
	p := &place{of: c, all: all, size: size}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		<-c.entered
		return nil, errBusy
	}
	p.leave = func() { <-c.slots; <-c.entered }
	if size <= smallBody {
		return p, nil
	}
	if c.bytes.Acquire(ctx, size) != nil {
		p.leave()
		return nil, errBusy
	}
	if all.Acquire(ctx, size) != nil {
		c.bytes.Release(size)
		p.leave()
		return nil, errBusy
	}
	slot := p.leave
	p.leave = func() { all.Release(size); c.bytes.Release(size); slot() }
	return p, nil
}

// park gives the place of a call back while it waits for a user or a download, so that others do not wait for them,
// too. It returns a refusal if too many do already, or if the call is too large to be kept.
func (p *place) park() error {
	if p == nil { // a test's call
		return nil
	}
	if p.size > maxParkedBody {
		return refuse("a call that waits has at most %d KiB: shorten its arguments", maxParkedBody>>10)
	}
	select {
	case p.of.parked <- struct{}{}:
	default:
		return refuse("%d calls of yours are waiting already: call again when one of them has ended", maxParkedCalls)
	}
	p.leave()
	p.leave = func() { <-p.of.parked }
	return nil
}

type placeKey struct{}

// admit lets a request in for which its run, and all runs together, have room. Others wait in a bounded queue, for a
// bounded time, and are refused with 429; their bodies are discarded, a few KB at a time.
func (s *Server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		switch {
		case size > maxCallBody:
			refuseRequest(w, r, http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, errTooLarge)
			return
		case size < 0: // chunked
			size = maxCallBody
		}
		access, _ := r.Context().Value(accessKey{}).(*Access)
		p, err := s.takePlace(r.Context(), access, size)
		if err != nil {
			s.calls.WithLabelValues(unknownTool, outcomeRefused).Inc()
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
			refuseRequest(w, r, http.StatusTooManyRequests, codeBusy, err)
			return
		}
		defer func() { p.leave() }() // as it is then
		if r.ContentLength != 0 {
			// a test's recorder has none
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(receiveTimeout))
			body := bufio.NewReader(http.MaxBytesReader(w, r.Body, maxCallBody))
			if isBatch(body) {
				refuseRequest(w, r, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, errBatch)
				return
			}
			if id, unknown := unknownMethod(body); unknown {
				answerUnknown(w, r, id)
				return
			}
			r.Body = readCloser{body, r.Body}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), placeKey{}, p)))
	})
}

// takePlace waits for a place for queueTimeout, and not longer than the run lives.
func (s *Server) takePlace(ctx context.Context, access *Access, size int64) (*place, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	defer context.AfterFunc(access.ctx, cancel)()
	return access.capacity.take(ctx, s.bytes, size)
}

// isBatch reports whether a body is a list, as old versions of MCP have it: one request could be thousands of calls.
func isBatch(body *bufio.Reader) bool {
	for {
		switch b, err := body.ReadByte(); {
		case err != nil:
			return false // the error comes again
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		default:
			_ = body.UnreadByte() // of the byte that was just read
			return b == '['
		}
	}
}

// methods are those of a server that has tools only. The SDK would answer some others with empty lists, and the rest
// with HTTP 400 and plain text.
var methods = []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "subscriptions/listen",
	"notifications/initialized", "notifications/cancelled", "notifications/progress",
	"notifications/roots/list_changed"}

// unknownMethod reports whether a small body names a method that the server does not have, and its id.
func unknownMethod(body *bufio.Reader) (id json.RawMessage, unknown bool) {
	start, _ := body.Peek(smallRequest) // an error comes again
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(start, &m) != nil || m.Method == "" {
		return nil, false
	}
	return m.ID, !slices.Contains(methods, m.Method)
}

// smallRequest is the size of a buffer: a request without a tool call has less.
const smallRequest = 4 << 10

// statelessVersion is the first version of MCP without sessions, which also wants HTTP 404 for an unknown method.
const statelessVersion = "2026-07-28"

// answerUnknown answers a method that is not known, or accepts a notification of one.
func answerUnknown(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
	if len(id) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("MCP-Protocol-Version") >= statelessVersion {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write(rpcError(id, jsonrpc.CodeMethodNotFound, "method not found: there are tools only"))
}

// rpcError is an answer of JSON-RPC to the request of an id, null for an unknown one.
func rpcError(id json.RawMessage, code int, message string) []byte {
	answer, _ := json.Marshal(map[string]any{ // has no value that cannot be encoded
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message},
	})
	return answer
}

type readCloser struct {
	io.Reader
	io.Closer
}

// refuseRequest answers a request whose id is not known, since its body is unread. Then it discards the body: a client
// that still sends would take the connection for a broken one.
func refuseRequest(w http.ResponseWriter, r *http.Request, status, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(rpcError(nil, code, err.Error())) // it fails only if the client has gone away
	control := http.NewResponseController(w)
	_ = control.Flush()
	_ = control.SetReadDeadline(time.Now().Add(receiveTimeout)) // a test's recorder has none
	httpx.Drain(r)
}
