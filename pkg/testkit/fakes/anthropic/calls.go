package anthropic

import (
	"io"
	"net/http"
	"slices"
	"time"
)

// Call is one call of a method.
type Call struct {
	At       time.Time
	Method   string // MethodMessages, or verb and path of an unknown route
	Header   http.Header
	Body     []byte
	Request  Request // once it is valid
	Command  string  // the last of Request.Commands
	Accepted bool    // it was carried out, even if its answer failed
	Status   int     // of the answer; 0 before it, and for a broken connection
	Open     bool    // it is being answered
	Broken   bool    // the connection broke before the end of the answer
}

// begin records a call that comes in. If it breaks off, the body is the part that has been received.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	call := Call{At: time.Now(), Method: methodOf(r), Header: r.Header.Clone(), Body: body, Open: true, Broken: true}
	return &exchange{Server: s, w: w, r: r, call: call, index: s.Add(call)}
}

// number counts calls from 1.
func (x *exchange) number() int { return x.index + 1 }

func methodOf(r *http.Request) string {
	route := r.Method + " " + r.URL.Path
	if route == "POST /v1/messages" {
		return MethodMessages
	}
	return route
}

// note changes the record of the call.
func (x *exchange) note(change func(*Call)) { x.Update(x.index, change) }

func (x *exchange) accept() { x.note(func(c *Call) { c.Accepted = true }) }

// end closes the record. It is deferred: an aborted answer ends in a panic.
func (x *exchange) end() {
	aborted := recover()
	x.note(func(c *Call) { c.Open, c.Broken = false, aborted != nil })
	if aborted != nil {
		panic(aborted)
	}
}

func (c *Call) sends() bool { return c.Method == MethodMessages }

// MessageCalls are the calls of MethodMessages, oldest first.
func (s *Server) MessageCalls() []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return !c.sends() })
}
