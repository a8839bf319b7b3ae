package slack

import "time"

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
	in := time.Until(time.Unix(p.Int("post_at", 0), 0))
	if in <= 0 {
		return nil, errorCode("time_in_past")
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
	return fields{"channel": r.ID, "scheduled_message_id": id, "post_at": p.str("post_at"), "message": m}.ok(), nil
}

// unschedule deletes a message that has not been posted yet.
func (s *Server) unschedule(p params) (any, error) {
	timer, known := s.scheduled[p.str("scheduled_message_id")]
	if !known {
		return nil, errorCode("invalid_scheduled_message_id")
	}
	timer.Stop()
	delete(s.scheduled, p.str("scheduled_message_id"))
	return fields{}.ok(), nil
}
