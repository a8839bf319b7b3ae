package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// keptEvents is how many answered events are kept for Redeliver.
const keptEvents = 1000

// maxHold is how long events that are to be reversed wait for the others.
const maxHold = time.Second

// queue holds what the app has not answered. The server's lock guards it.
type queue struct {
	waiting       []*delivery // for a socket, or for the next post, in order
	out           []*delivery // sent and not answered
	later         []*delivery // to be sent again after a delay
	answered      []*delivery // the last keptEvents answered ones
	acks          []Ack
	lost          int
	mentionsFirst bool
	duplicates    int
	reversals     int // how many future events to reverse
	held          []*delivery
	holds         int  // how often held has begun to fill
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
	sent     time.Time
	on       *socket
	timer    *time.Timer
}

// Ack is the app's answer to one event, slash command or interaction.
type Ack struct {
	At       time.Time
	Took     time.Duration // since it was last sent
	Kind     string        // events_api, slash_commands, interactive
	EventID  string
	Envelope string
	Attempt  int // 0 is the first
	Payload  json.RawMessage
}

// enqueue adds a delivery, duplicated or reordered by faults. The lock is held.
func (s *Server) enqueue(d *delivery) {
	q := &s.queue
	if q.reversals > 0 {
		q.held = append(q.held, d)
		switch len(q.held) {
		case q.reversals:
			s.release()
		case 1:
			s.releaseLater()
		}
		return
	}
	q.waiting = append(q.waiting, d)
	if q.duplicates > 0 {
		q.duplicates--
		again := *d
		q.waiting = append(q.waiting, &again)
	}
	s.dispatch()
	s.Notify()
}

// releaseLater releases what is held after maxHold: without it events would be lost if too few followed.
func (s *Server) releaseLater() {
	s.queue.holds++
	hold := s.queue.holds
	time.AfterFunc(maxHold, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.queue.holds == hold && len(s.queue.held) > 0 {
			s.release()
		}
	})
}

// release sends what is held, in reverse order. The lock is held.
func (s *Server) release() {
	q := &s.queue
	all := q.held
	q.held, q.reversals = nil, 0
	slices.Reverse(all)
	for _, d := range all {
		s.enqueue(d)
	}
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
	d.envelope, d.on, d.sent = fmt.Sprintf("%08x-fa4e-4000-8000-%012x", s.ids, s.ids), c, time.Now()
	frame := map[string]any{
		"envelope_id": d.envelope, "payload": d.payload, "type": d.kind,
		"accepts_response_payload": d.kind != "events_api",
	}
	if d.kind == "events_api" {
		frame["retry_attempt"], frame["retry_reason"] = d.attempt, d.reason
	}
	s.queue.out = append(s.queue.out, d)
	envelope := d.envelope
	d.timer = time.AfterFunc(s.o.AckTimeout, func() { s.unanswered(d, envelope, "timeout") })
	c.send(encoded(frame))
}

func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	must(err) // the fake's own types
	return raw
}

// unanswered sends a delivery again, or drops it.
func (s *Server) unanswered(d *delivery, envelope, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.envelope != envelope || !s.queue.takeBack(d) {
		return
	}
	s.retry(d, reason)
	s.dispatch()
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
	q.later = append(q.later, d)
	time.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(q.later, d); i >= 0 {
			q.later = slices.Delete(q.later, i, i+1)
			q.waiting = append(q.waiting, d)
			s.dispatch()
			s.Notify()
		}
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
		s.queue.acks = append(s.queue.acks, Ack{At: time.Now(), Envelope: envelope, Payload: payload})
		s.Notify()
		return
	}
	d := s.queue.out[i]
	s.queue.takeBack(d)
	s.finish(d, payload)
}

// finish removes an answered delivery. The lock is held.
func (s *Server) finish(d *delivery, payload json.RawMessage) {
	q, now := &s.queue, time.Now()
	ack := Ack{At: now, Took: now.Sub(d.sent), Kind: d.kind, EventID: d.eventID, Envelope: d.envelope,
		Attempt: d.attempt, Payload: payload}
	q.acks = append(q.acks, ack)
	q.answered = append(q.answered, d)
	if extra := len(q.answered) - keptEvents; extra > 0 {
		q.answered = slices.Delete(q.answered, 0, extra)
	}
	s.showAnswer(d, payload)
	s.Notify()
}

// broken retries what was sent on a broken socket. The lock is held.
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
	return len(s.queue.waiting) + len(s.queue.out) + len(s.queue.later) + len(s.queue.held)
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

// DuplicateNext sends each of the next n events twice.
func (s *Server) DuplicateNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.duplicates = n
}

// ReverseNext holds the next n events back, and sends them in reverse order: after the nth, or a second
// after the first.
func (s *Server) ReverseNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
	s.queue.reversals = n
}

// Redeliver sends the last n answered events again, as Slack does when an answer was lost, and
// returns how many there were.
func (s *Server) Redeliver(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := slices.DeleteFunc(slices.Clone(s.queue.answered),
		func(d *delivery) bool { return d.kind != "events_api" })
	n = min(n, len(events))
	for _, d := range events[len(events)-n:] {
		again := *d
		again.attempt, again.reason = 1, "timeout"
		s.queue.waiting = append(s.queue.waiting, &again)
	}
	s.dispatch()
	return n
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
	s.enqueue(d)
	return d.eventID
}
