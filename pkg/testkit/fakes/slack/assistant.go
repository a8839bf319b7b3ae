package slack

import (
	"slices"
	"time"
)

// statusLifetime is when Slack removes a status.
const statusLifetime = 2 * time.Minute

// Pane is one thread in the assistant's pane.
type Pane struct {
	Status  string
	context string // the channel that the user is viewing
	since   time.Time
}

// Status is one change of a thread's status; "" removes it, as does a post of the bot in the thread.
type Status struct {
	ThreadTS string
	Text     string
}

// pane is the pane of a request: any thread of a DM is one.
func (s *Server) pane(p params) (*Pane, error) {
	r := s.rooms[p.str("channel_id")]
	switch {
	case r == nil || !s.sees(r):
		return nil, errorCode("channel_not_found")
	case r.Kind != DM:
		return nil, errorCode("method_not_supported_for_channel_type")
	case r.find(p.str("thread_ts")) == nil:
		return nil, errorCode("invalid_thread_ts")
	}
	return r.paneOf(p.str("thread_ts")), nil
}

func (r *room) paneOf(ts string) *Pane {
	if r.panes[ts] == nil {
		r.panes[ts] = &Pane{}
	}
	return r.panes[ts]
}

func (s *Server) setStatus(p params) (any, error) {
	pane, err := s.pane(p)
	if err != nil {
		return nil, err
	}
	pane.Status, pane.since = p.str("status"), time.Now()
	s.statuses = append(s.statuses, Status{p.str("thread_ts"), pane.Status})
	return fields{}.ok(), nil
}

// clearStatus removes the status of a thread in which the bot has posted.
func (r *room) clearStatus(threadTS string, s *Server) {
	if pane := r.panes[threadTS]; pane != nil && pane.Status != "" {
		pane.Status = ""
		s.statuses = append(s.statuses, Status{threadTS, ""})
	}
}

// OpenPane opens the assistant's pane, and returns its new thread in the DM. The context is the
// channel that the user is viewing, or the zero Place.
func (s *Server) OpenPane(by User, context Place) Place {
	dm := s.DM(by)
	dm.act(func(r *room) error {
		m := s.add(r, s.bot(&Message{Subtype: "assistant_app_thread", Text: "New Assistant Thread"}), "")
		m.ThreadTS = m.TS
		dm.ThreadTS = m.TS
		r.paneOf(m.TS).context = context.ChannelID
		s.emitPane("assistant_thread_started", r, m.TS, by)
		return nil
	})
	return dm
}

// SwitchContext makes another channel the one that the user is viewing, and the context of the pane.
func (p Place) SwitchContext(by User, context Place) {
	p.act(func(r *room) error {
		r.paneOf(p.ThreadTS).context = context.ChannelID
		p.s.emitPane("assistant_thread_context_changed", r, p.ThreadTS, by)
		return nil
	})
}

func (s *Server) emitPane(kind string, r *room, ts string, by User) {
	looks := fields{}
	if at := r.panes[ts].context; at != "" {
		looks = fields{"channel_id": at, "team_id": teamID, "enterprise_id": nil}
	}
	s.emit("assistant:write", fields{
		"type": kind, "event_ts": s.nextTS(),
		"assistant_thread": fields{"user_id": by.ID, "context": looks, "channel_id": r.ID, "thread_ts": ts},
	})
}

// Pane is the pane of the place, which must be its thread.
func (p Place) Pane() Pane {
	var shown Pane
	p.act(func(r *room) error {
		if pane := r.panes[p.ThreadTS]; pane != nil {
			shown = *pane
			if time.Since(pane.since) > statusLifetime {
				shown.Status = ""
			}
		}
		return nil
	})
	return shown
}

// Statuses are all changes of statuses, oldest first.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses)
}
