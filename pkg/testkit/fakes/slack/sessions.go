package slack

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

const maxSessionTitle = 200 // characters

// setSession sets the status of the agent's session in a thread. Only apps that are agents, which have the scope
// assistant:write, have sessions.
func (s *Server) setSession(p params) (any, error) {
	r := s.rooms[p.str("channel_id")]
	switch {
	case r == nil || !s.sees(r):
		return nil, errorCode("channel_not_found")
	case !r.in(s.me):
		return nil, errorCode("not_in_channel")
	case !s.may("assistant:write"):
		return nil, errorCode("not_an_agent")
	case r.find(p.str("thread_ts")) == nil:
		return nil, errorCode("invalid_thread_ts")
	case !slices.Contains([]string{"active", "processing", "suspended", "closed"}, p.str("status")):
		return nil, errorCode("invalid_arguments")
	case utf8.RuneCountInString(p.str("title")) > maxSessionTitle:
		return nil, errorCode("invalid_arguments")
	}
	if r.sessions == nil {
		r.sessions = map[string]string{}
	}
	r.sessions[p.str("thread_ts")] = p.str("status")
	return fields{"status": p.str("status"), "agent_status": p.str("status")}.ok(), nil
}

// Session is the status of the agent's session in the place, which must be a thread; "" if it has none.
func (p Place) Session() (status string) {
	p.act(func(r *room) error {
		status = r.sessions[p.ThreadTS]
		return nil
	})
	return status
}

// StopAgent clicks the button that is shown while the session in the place, a thread, is processing. Streams in it
// stop; the status stays.
func (p Place) StopAgent(by User) {
	p.act(func(r *room) error {
		if r.sessions[p.ThreadTS] != "processing" || !r.in(by) {
			return fmt.Errorf("%s has no button to stop the agent in %s", by.RealName, p.ThreadTS)
		}
		stopped := []string{}
		for _, m := range r.messages {
			if m.ThreadTS == p.ThreadTS && m.stream.open() {
				m.stream.stopped, m.stream.stoppedBy = true, by.ID
				m.stream.shown(m)
				stopped = append(stopped, m.TS)
			}
		}
		p.s.emit("assistant:write", fields{
			"type": "agent_session_stopped", "event_ts": p.s.nextTS(), "channel": r.ID, "thread_ts": p.ThreadTS,
			"user": by.ID, "streaming_message_ts": stopped,
		})
		return nil
	})
}
