package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The documented limits of getUpdates.
const (
	maxUpdates = 100
	maxPoll    = 50 * time.Second

	firstUpdate = 730_000_001
	keptFor     = 24 * time.Hour // then an update that was not taken is dropped
)

// queue holds the updates that the bot has not confirmed. The server's lock guards it.
type queue struct {
	next    int64
	waiting []update
	allowed []string // kinds; nil is the default

	webhook string
	poller  chan error // ends the open poll with an error; nil if none is open
}

type update struct {
	id    int64
	at    time.Time
	body  json.RawMessage
	again bool // delivered once, at any offset, and dropped
}

func newQueue(first int) queue { return queue{next: firstUpdate + int64(first)} }

func (q *queue) wants(kind string) bool {
	if len(q.allowed) > 0 {
		return slices.Contains(q.allowed, kind)
	}
	switch kind {
	case "chat_member", "message_reaction", "message_reaction_count":
		return false
	}
	return true
}

// emit queues an update, if the bot allows its kind. The lock is held.
func (s *Server) emit(kind string, v any) {
	if !s.queue.wants(kind) {
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("telegram: encode update: %v", err)) // the fake's own types
	}
	s.enqueue(fmt.Sprintf("%q:%s", kind, body))
}

func (s *Server) enqueue(fields string) int64 {
	id := s.queue.next
	s.queue.next++
	s.Emit(update{id: id, at: time.Now(), body: fmt.Appendf(nil, `{"update_id":%d,%s}`, id, fields)})
	return id
}

// push queues an update, some times: they come in one answer. The lock is held.
func (s *Server) push(u update, times int) {
	for range times {
		s.queue.waiting = append(s.queue.waiting, u)
	}
	s.Notify()
}

// pushAgain queues confirmed updates again, with their old ids. The lock is held.
func (s *Server) pushAgain(updates []update) {
	for i := range updates {
		updates[i].again = true
	}
	s.queue.waiting = append(updates, s.queue.waiting...)
	s.Notify()
}

// getUpdates returns the updates from offset on, and waits for one if there is none.
func (s *Server) getUpdates(ctx context.Context, p params) (any, error) {
	mine := make(chan error, 1)
	if err := s.beginPoll(p, mine); err != nil {
		return nil, err
	}
	defer s.endPoll(mine)
	wait := min(time.Duration(max(p.int("timeout", 0), 0))*time.Second, maxPoll)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		batch, changed := s.take(p)
		if len(batch) > 0 || wait == 0 {
			return batch, nil
		}
		select {
		case <-changed:
		case err := <-mine:
			return nil, err
		case <-timer.C:
			return batch, nil
		case <-s.ConnContext().Done():
			return batch, nil // of a broken connection
		case <-ctx.Done():
			return batch, nil
		}
	}
}

// beginPoll makes a poll the only one: it ends an open one, as the platform does.
func (s *Server) beginPoll(p params, mine chan error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled++
	q := &s.queue
	if q.webhook != "" {
		return conflict("can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	}
	var allowed []string
	if found, err := p.json("allowed_updates", &allowed); err == nil && found {
		q.allowed = allowed
	}
	q.end("terminated by other getUpdates request; make sure that only one bot instance is running")
	q.poller = mine
	s.confirm(p.int("offset", 0))
	s.Notify()
	return nil
}

func (s *Server) endPoll(mine chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.poller == mine {
		s.queue.poller = nil
	}
}

// end ends the open poll, if any.
func (q *queue) end(reason string) {
	if q.poller != nil {
		q.poller <- conflict(reason)
		q.poller = nil
	}
}

// forget drops the updates that were not taken in time.
func (q *queue) forget(now time.Time) {
	q.waiting = slices.DeleteFunc(q.waiting, func(u update) bool { return !u.again && now.Sub(u.at) > keptFor })
}

// maxAhead is how far an offset may be beyond the last update.
const maxAhead = 10

// confirm drops the updates below offset. One too far beyond the last update, such as another bot's, drops none.
func (s *Server) confirm(offset int64) {
	q := &s.queue
	if offset > q.next+maxAhead {
		return
	}
	var kept []update
	for _, u := range q.waiting {
		if u.again || u.id >= offset {
			kept = append(kept, u)
		} else {
			s.Delivered(u)
		}
	}
	q.waiting = kept
}

// take is the batch for a poll, and the channel that is closed at the next change.
func (s *Server) take(p params) ([]json.RawMessage, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := p.int("limit", maxUpdates)
	if limit < 1 || limit > maxUpdates {
		limit = maxUpdates
	}
	q := &s.queue
	q.forget(time.Now())
	batch := []json.RawMessage{}
	var kept []update
	for _, u := range q.waiting {
		room := int64(len(batch)) < limit
		if room {
			batch = append(batch, u.body)
		}
		if !room || !u.again {
			kept = append(kept, u)
		}
	}
	q.waiting = kept
	return batch, s.Changed()
}

func (s *Server) deleteWebhook(p params) (any, error) {
	s.queue.webhook = ""
	if p.bool("drop_pending_updates") {
		s.queue.waiting = nil
	}
	return true, nil
}

func (s *Server) getWebhookInfo(params) (any, error) {
	return fields{"url": s.queue.webhook, "has_custom_certificate": false, "pending_update_count": len(s.queue.waiting),
		"allowed_updates": s.queue.allowed}, nil
}

// Pending is how many updates the bot has not confirmed.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue.waiting) + s.Held()
}

// SetWebhook sets the bot's webhook, as another program with its token would; "" deletes it. The
// fake never calls it: updates stay queued.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.webhook = url
	if url != "" {
		s.queue.end("terminated by setWebhook request")
	}
}
