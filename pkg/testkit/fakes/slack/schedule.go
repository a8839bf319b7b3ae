package slack

import (
	"strconv"
	"time"
)

// maxSchedule is how far ahead a message may be scheduled.
const maxSchedule = 120 * 24 * time.Hour

type scheduled struct {
	OK      bool     `json:"ok"`
	Channel string   `json:"channel"`
	ID      string   `json:"scheduled_message_id"`
	PostAt  string   `json:"post_at"`
	Message *Message `json:"message"`
}

// scheduleMessage posts a message at a time, unless it is deleted before.
func (s *Server) scheduleMessage(p params) (any, error) {
	r, err := s.writable(p.str("channel"))
	if err != nil {
		return nil, err
	}
	m := &Message{}
	if err := p.content(m, maxText); err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(p.str("post_at"), 10, 64)
	in := time.Until(time.Unix(seconds, 0))
	switch {
	case err != nil:
		return nil, errorCode("invalid_time")
	case in <= 0:
		return nil, errorCode("time_in_past")
	case in > maxSchedule:
		return nil, errorCode("time_too_far")
	}
	id, thread := s.id("Q"), p.str("thread_ts")
	s.scheduled[id] = time.AfterFunc(in, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, still := s.scheduled[id]; still {
			delete(s.scheduled, id)
			s.say(r, s.bot(m), thread)
		}
	})
	return scheduled{true, r.ID, id, p.str("post_at"), m}, nil
}

// unschedule deletes a message that has not been posted yet.
func (s *Server) unschedule(p params) (any, error) {
	timer, known := s.scheduled[p.str("scheduled_message_id")]
	if !known {
		return nil, errorCode("invalid_scheduled_message_id")
	}
	timer.Stop()
	delete(s.scheduled, p.str("scheduled_message_id"))
	return done{OK: true}, nil
}
