package slack

import (
	"slices"
	"time"
)

// statusLifetime is when Slack removes a status.
const statusLifetime = 2 * time.Minute

// Status is one change of a thread's status; "" removes it, as does a post of the bot in the thread.
type Status struct {
	ThreadTS string
	Text     string

	at time.Time
}

// setStatus sets the status of a thread in the assistant's pane: any thread of a DM is one.
func (s *Server) setStatus(p params) (any, error) {
	r := s.rooms[p.str("channel_id")]
	switch {
	case r == nil || !s.sees(r):
		return nil, errorCode("channel_not_found")
	case r.Kind != DM:
		return nil, errorCode("method_not_supported_for_channel_type")
	case r.find(p.str("thread_ts")) == nil:
		return nil, errorCode("invalid_thread_ts")
	}
	s.noteStatus(p.str("thread_ts"), p.str("status"))
	return fields{}.ok(), nil
}

func (s *Server) noteStatus(threadTS, text string) {
	s.statuses = append(s.statuses, Status{threadTS, text, time.Now()})
}

// status is the status that a thread shows, "" for none.
func (s *Server) status(threadTS string) string {
	for _, last := range slices.Backward(s.statuses) {
		switch {
		case time.Since(last.at) > statusLifetime:
			return ""
		case last.ThreadTS == threadTS:
			return last.Text
		}
	}
	return ""
}

// OpenPane opens the assistant's pane, and returns its new thread in the DM. The context is the
// channel that the user is viewing, or the zero Place.
func (s *Server) OpenPane(by User, context Place) Place {
	dm := s.DM(by)
	dm.act(func(r *room) error {
		m := s.add(r, s.bot(&Message{Subtype: "assistant_app_thread", Text: "New Assistant Thread"}), "")
		m.ThreadTS = m.TS
		dm.ThreadTS = m.TS
		return nil
	})
	dm.emitPane("assistant_thread_started", by, context)
	return dm
}

// SwitchContext makes another channel the one that the user is viewing, and the context of the pane.
func (p Place) SwitchContext(by User, context Place) {
	p.emitPane("assistant_thread_context_changed", by, context)
}

func (p Place) emitPane(kind string, by User, context Place) {
	looks := fields{}
	if context.ChannelID != "" {
		looks = fields{"channel_id": context.ChannelID, "team_id": teamID, "enterprise_id": nil}
	}
	p.act(func(r *room) error {
		p.s.emit("assistant:write", fields{"type": kind, "event_ts": p.s.nextTS(), "assistant_thread": fields{
			"user_id": by.ID, "context": looks, "channel_id": r.ID, "thread_ts": p.ThreadTS,
		}})
		return nil
	})
}

// Pane is a thread in the assistant's pane.
type Pane struct {
	Status string
}

// Pane is the pane of the place, which must be its thread.
func (p Place) Pane() Pane {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return Pane{p.s.status(p.ThreadTS)}
}

// Statuses are all changes of statuses, oldest first.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses)
}
