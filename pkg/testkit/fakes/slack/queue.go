package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// keptEvents is how many answered events Redeliver can reach back to.
const keptEvents = 1000

// queue holds what the app has not answered yet. The server's lock guards it.
type queue struct {
	waiting       []*delivery // for a socket, or for the next post, in order
	out           []*delivery // sent and not answered
	gone          []*delivery // answered, the last ones
	acks          []Ack
	lost          int
	mentionsFirst bool
	twice         int
	reversed      int // how many events to come are turned around
	held          []*delivery
	worker        bool // somebody posts to EventsURL
	posting       sync.WaitGroup
}

// delivery is one event, slash command or interaction on its way to the app.
type delivery struct {
	kind     string // events_api, slash_commands, interactive
	eventID  string
	payload  json.RawMessage
	envelope string // of the last time it was sent
	attempt  int    // 0 is the first
	reason   string // why it is sent again
	timeouts int
	sent     time.Time
	on       *socket
	timer    *time.Timer
}

// Ack is the app's answer to one event, slash command or interaction.
type Ack struct {
	At       time.Time
	Took     time.Duration // since it was sent, the last time
	Kind     string        // events_api, slash_commands, interactive
	EventID  string
	Envelope string
	Attempt  int // 0 is the first
	Payload  json.RawMessage
}

// enqueue adds a delivery, however the order is to be broken. The lock is held.
func (s *Server) enqueue(d *delivery) {
	q := &s.queue
	if q.reversed > 0 {
		q.held = append(q.held, d)
		if len(q.held) < q.reversed {
			return
		}
		slices.Reverse(q.held)
		all := q.held
		q.held, q.reversed = nil, 0
		for _, d := range all {
			s.enqueue(d)
		}
		return
	}
	q.waiting = append(q.waiting, d)
	if q.twice > 0 {
		q.twice--
		again := *d
		q.waiting = append(q.waiting, &again)
	}
	s.dispatch()
	s.Notify()
}

// dispatch moves what waits onto the sockets, or has it posted. The lock is held.
func (s *Server) dispatch() {
	q := &s.queue
	if s.o.EventsURL != "" {
		if len(q.waiting) > 0 && !q.worker && s.ConnContext().Err() == nil {
			q.worker = true
			q.posting.Add(1)
			go s.postAll()
		}
		return
	}
	for len(q.waiting) > 0 {
		c := s.link.next()
		if c == nil {
			s.giveUp()
			return
		}
		d := q.waiting[0]
		q.waiting = q.waiting[1:]
		s.sendOn(c, d)
	}
}

// giveUp loses the commands and interactions that wait while nobody is connected: the person
// is told at once that it did not work. Events wait, which the real ones do not for long.
func (s *Server) giveUp() {
	q := &s.queue
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(d *delivery) bool { return d.kind != "events_api" })
	q.lost += before - len(q.waiting)
}

// sendOn gives a delivery to a socket, for as long as an answer may take.
func (s *Server) sendOn(c *socket, d *delivery) {
	s.ids++
	d.envelope, d.on, d.sent = fmt.Sprintf("%08x-fa4e-4000-8000-%012x", s.ids, s.ids), c, time.Now()
	frame := map[string]any{
		"envelope_id": d.envelope, "payload": d.payload, "type": d.kind, "accepts_response_payload": d.kind != "events_api",
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
	must(err) // own types only
	return raw
}

// unanswered sends a delivery again, or gives it up.
func (s *Server) unanswered(d *delivery, envelope, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.envelope != envelope || !s.queue.takeBack(d) {
		return
	}
	d.timeouts++
	s.again(d, reason)
}

// again is for a delivery that failed. Only events are tried again: a person whose command
// was not answered is told so. The lock is held.
func (s *Server) again(d *delivery, reason string) {
	if d.kind != "events_api" || d.timeouts > max(s.o.Retries, 0) {
		s.queue.lost++
		s.Notify()
		return
	}
	d.attempt++
	d.reason = reason
	s.queue.waiting = append(s.queue.waiting, d)
	s.dispatch()
	s.Notify()
}

// takeBack takes a delivery from those that are out, and reports whether it was one.
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

// answered keeps the app's answer to an envelope. One that nobody waits for is kept as well.
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

// finish notes that a delivery has its answer. The lock is held.
func (s *Server) finish(d *delivery, payload json.RawMessage) {
	q, now := &s.queue, time.Now()
	ack := Ack{At: now, Took: now.Sub(d.sent), Kind: d.kind, EventID: d.eventID, Envelope: d.envelope, Attempt: d.attempt, Payload: payload}
	q.acks = append(q.acks, ack)
	q.gone = append(q.gone, d)
	if extra := len(q.gone) - keptEvents; extra > 0 {
		q.gone = slices.Delete(q.gone, 0, extra)
	}
	s.showAnswer(d, payload)
	s.Notify()
}

// broken takes back what was out on a socket that is gone. It counts as sent once more, but
// never as lost: a storm of broken connections would end in nothing.
func (s *Server) broken(c *socket) {
	q := &s.queue
	var back []*delivery
	for _, d := range slices.Clone(q.out) {
		if d.on != c || !q.takeBack(d) {
			continue
		}
		if d.kind == "events_api" {
			d.attempt++
			d.reason = "timeout"
			back = append(back, d)
		} else {
			q.lost++
		}
	}
	q.waiting = append(back, q.waiting...)
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
	return len(s.queue.waiting) + len(s.queue.out) + len(s.queue.held)
}

// Undelivered is how many were given up, because nobody answered for too long.
func (s *Server) Undelivered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.lost
}

// SetMentionFirst has app_mention come before the message that it is one of, or after it.
func (s *Server) SetMentionFirst(first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.mentionsFirst = first
}

// DuplicateNext sends each of the next n events two times.
func (s *Server) DuplicateNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.twice = n
}

// ReverseNext holds the next n events back until all are there, and turns their order around.
func (s *Server) ReverseNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.reversed = n
}

// Redeliver sends the last n answered events once more, as Slack does when an answer got lost
// on the way, and returns how many there were.
func (s *Server) Redeliver(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := slices.DeleteFunc(slices.Clone(s.queue.gone), func(d *delivery) bool { return d.kind != "events_api" })
	n = min(n, len(events))
	for _, d := range events[len(events)-n:] {
		again := *d
		again.timeouts = 0
		s.again(&again, "timeout")
	}
	return n
}

// Inject sends an event that is the given JSON, however wrong:
//
//	s.Inject(`{"type": "message", "user": 7}`)
func (s *Server) Inject(event string) (eventID string) {
	if !json.Valid([]byte(event)) {
		panic("slack: not JSON: " + event) // InjectFrame takes anything
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.wrapped(json.RawMessage(event))
	s.enqueue(d)
	return d.eventID
}
