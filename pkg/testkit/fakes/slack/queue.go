package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// queue holds the deliveries that the app has not answered. The server's lock guards it.
type queue struct {
	waiting       []*delivery // for a socket, or for the next post, in order
	out           []*delivery // sent and not answered
	later         int         // are sent again after a delay
	acks          []Ack
	lost          int
	mentionsFirst bool
	worker        bool // postAll is running
	posting       sync.WaitGroup
}

// delivery is one event, slash command or interaction on its way to the app.
type delivery struct {
	kind     string // events_api, slash_commands, interactive
	eventID  string
	payload  json.RawMessage
	envelope string // its id when it was last sent
	attempt  int    // 0 is the first
	reason   string // why it is sent again
	on       *socket
	timer    *time.Timer
}

// Ack is the app's answer to one event, slash command or interaction.
type Ack struct {
	Envelope string
}

// push queues a delivery, some times. The lock is held.
func (s *Server) push(d *delivery, times int) {
	s.queue.waiting = append(s.queue.waiting, d)
	for range times - 1 {
		again := *d
		s.queue.waiting = append(s.queue.waiting, &again)
	}
	s.dispatch()
	s.Notify()
}

// pushAgain queues answered events again, as Slack does when an answer was lost. The lock is held.
func (s *Server) pushAgain(events []*delivery) {
	for _, d := range events {
		again := *d
		again.attempt, again.reason = 1, "timeout"
		s.queue.waiting = append(s.queue.waiting, &again)
	}
	s.dispatch()
}

// dispatch sends waiting deliveries on the sockets, or starts posting them. Where no connection is open, that
// counts as an attempt. The lock is held.
func (s *Server) dispatch() {
	q := &s.queue
	if s.o.EventsURL != "" && s.ConnContext().Err() == nil {
		if len(q.waiting) > 0 && !q.worker {
			q.worker = true
			q.posting.Add(1)
			go s.postAll()
		}
		return
	}
	for len(q.waiting) > 0 {
		d := q.waiting[0]
		q.waiting = q.waiting[1:]
		c := s.link.next()
		if c == nil || s.o.EventsURL != "" {
			s.retry(d, "connection_failed")
			continue
		}
		s.sendOn(c, d)
	}
}

// sendOn sends a delivery on a socket, and starts its timeout.
func (s *Server) sendOn(c *socket, d *delivery) {
	s.ids++
	d.envelope, d.on = fmt.Sprintf("%08x-fa4e-4000-8000-%012x", s.ids, s.ids), c
	frame := fields{
		"envelope_id": d.envelope, "payload": d.payload, "type": d.kind,
		"accepts_response_payload": d.kind != "events_api",
	}
	if d.kind == "events_api" {
		frame["retry_attempt"], frame["retry_reason"] = d.attempt, d.reason
	}
	s.queue.out = append(s.queue.out, d)
	envelope := d.envelope
	d.timer = time.AfterFunc(s.o.AckTimeout, func() { s.unanswered(d, envelope) })
	c.send(encoded(frame))
}

func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	must(err) // the fake's own types
	return raw
}

// unanswered sends a delivery again, or drops it.
func (s *Server) unanswered(d *delivery, envelope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.envelope == envelope && s.queue.takeBack(d) {
		s.retry(d, "timeout")
		s.dispatch()
	}
}

// retry sends a failed delivery again after its delay, if it is an event and there are retries left, and
// drops it otherwise: for a command Slack shows the user an error. The caller dispatches. The lock is held.
func (s *Server) retry(d *delivery, reason string) {
	q := &s.queue
	if d.kind != "events_api" || d.attempt >= len(s.o.RetryDelays) {
		q.lost++
		s.Notify()
		return
	}
	delay := s.o.RetryDelays[d.attempt]
	d.attempt++
	d.reason = reason
	if delay <= 0 {
		q.waiting = append(q.waiting, d)
		return
	}
	q.later++
	time.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		q.later--
		q.waiting = append(q.waiting, d)
		s.dispatch()
		s.Notify()
	})
}

// takeBack removes a delivery from those that are sent, and reports whether it was one.
func (q *queue) takeBack(d *delivery) bool {
	i := slices.Index(q.out, d)
	if i < 0 {
		return false
	}
	q.out = slices.Delete(q.out, i, i+1)
	if d.timer != nil {
		d.timer.Stop()
	}
	return true
}

// answered records the app's answer to an envelope, also to one that is not pending.
func (s *Server) answered(envelope string, payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.queue.out, func(d *delivery) bool { return d.envelope == envelope })
	if i < 0 {
		s.queue.acks = append(s.queue.acks, Ack{envelope})
		s.Notify()
		return
	}
	d := s.queue.out[i]
	s.queue.takeBack(d)
	s.finish(d, payload)
}

// finish removes an answered delivery. The lock is held.
func (s *Server) finish(d *delivery, payload json.RawMessage) {
	s.queue.acks = append(s.queue.acks, Ack{d.envelope})
	if d.kind == "events_api" {
		s.Delivered(d)
	}
	s.showAnswer(d, payload)
	s.Notify()
}

// broken retries the deliveries of a broken socket. The lock is held.
func (s *Server) broken(c *socket) {
	for _, d := range slices.Clone(s.queue.out) {
		if d.on == c && s.queue.takeBack(d) {
			s.retry(d, "timeout")
		}
	}
	s.dispatch()
}

// Acks are the app's answers, oldest first.
func (s *Server) Acks() []Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue.acks)
}

// Pending is how many events, commands and interactions the app has not answered.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue.waiting) + len(s.queue.out) + s.queue.later + s.Held()
}

// Undelivered is how many were dropped without an answer.
func (s *Server) Undelivered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.lost
}

// SetMentionFirst makes app_mention come before the message event of the same message, or after it.
func (s *Server) SetMentionFirst(first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.mentionsFirst = first
}

// Inject sends the given JSON as an event, which may be malformed:
//
//	s.Inject(`{"type": "message", "user": 7}`)
func (s *Server) Inject(event string) (eventID string) {
	if !json.Valid([]byte(event)) {
		panic("slack: not JSON: " + event) // InjectFrame takes any text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.wrapped(json.RawMessage(event))
	s.Emit(d)
	return d.eventID
}
