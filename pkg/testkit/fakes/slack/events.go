package slack

import (
	"encoding/json"
	"slices"
	"strings"
)

// messageEvent is the event of a message.
type messageEvent struct {
	Message
	Channel string `json:"channel"`
	Kind    string `json:"channel_type,omitempty"`
	EventTS string `json:"event_ts"`
}

// scopeFor is the scope for conversations of a kind: to "read" their properties, their "history", or to "write".
func scopeFor(kind, right string) string {
	return map[string]string{Public: "channels", Private: "groups", DM: "im", GroupDM: "mpim"}[kind] + ":" + right
}

// emitChannel emits a change of a channel. Private ones have another event.
func (s *Server) emitChannel(r *room, change string, event fields) {
	kind := "channel_" + change
	if r.Kind != Public {
		kind = "group_" + change
	}
	event["type"], event["event_ts"] = kind, s.nextTS()
	if s.sees(r) {
		s.emit(scopeFor(r.Kind, "read"), event)
	}
}

// emitMessage emits a message, and app_mention if it mentions the bot.
func (s *Server) emitMessage(r *room, m *Message) {
	if !r.in(s.me) {
		return
	}
	shown := m.bare()
	event := messageEvent{Message: shown, Channel: r.ID, Kind: r.Kind, EventTS: m.TS}
	message := func() { s.emit(scopeFor(r.Kind, "history"), event) }
	mention := func() {
		if r.Kind == DM || m.User == s.me.ID || !mentions(m.Text, s.me) ||
			!slices.Contains([]string{"", "file_share", "thread_broadcast"}, m.Subtype) {
			return
		}
		again := event
		again.Type, again.Kind = "app_mention", ""
		again.Subtype = ""
		s.emit("app_mentions:read", again)
	}
	if s.queue.mentionsFirst {
		mention()
		message()
		return
	}
	message()
	mention()
}

func mentions(text string, u User) bool {
	return strings.Contains(text, "<@"+u.ID+">") || strings.Contains(text, "<@"+u.ID+"|")
}

func (s *Server) emitChanged(r *room, m *Message, before Message) {
	s.emitChange(r, fields{"subtype": "message_changed", "message": m.snapshot(), "previous_message": before})
}

func (s *Server) emitDeleted(r *room, before Message) {
	s.emitChange(r, fields{"subtype": "message_deleted", "previous_message": before, "deleted_ts": before.TS})
}

func (s *Server) emitChange(r *room, e fields) {
	if !r.in(s.me) {
		return
	}
	ts := s.nextTS()
	e["type"], e["channel"], e["channel_type"], e["hidden"] = "message", r.ID, r.Kind, true
	e["ts"], e["event_ts"] = ts, ts
	s.emit(scopeFor(r.Kind, "history"), e)
}

// emitReaction emits an added or removed reaction.
func (s *Server) emitReaction(r *room, m *Message, by, name string, added bool) {
	if !r.in(s.me) {
		return
	}
	kind := "reaction_removed"
	if added {
		kind = "reaction_added"
	}
	s.emit("reactions:read", fields{
		"type": kind, "user": by, "reaction": name, "item_user": m.User, "event_ts": s.nextTS(),
		"item": map[string]string{"type": "message", "channel": r.ID, "ts": m.TS},
	})
}

// emitMember emits that a user joined or left.
func (s *Server) emitMember(kind string, r *room, user, by User) {
	event := fields{
		"type": kind, "user": user.ID, "channel": r.ID, "channel_type": r.ID[:1], "team": teamID,
		"event_ts": s.nextTS(),
	}
	if by.ID != user.ID {
		event["inviter"] = by.ID
	}
	if r.in(s.me) {
		s.emit(scopeFor(r.Kind, "read"), event)
	}
}

// emit sends an event to the app, if it has the scope. The lock is held.
func (s *Server) emit(scope string, event any) {
	if scope != "" && !s.may(scope) {
		return
	}
	raw, err := json.Marshal(event)
	must(err) // the fake's own types
	s.Emit(s.wrapped(raw))
}

// wrapped is an event in the envelope of the Events API.
func (s *Server) wrapped(event json.RawMessage) *delivery {
	d := &delivery{kind: "events_api", eventID: s.id("Ev")}
	payload, err := json.Marshal(fields{
		"token": "FAKEverificationTokenXXXX", "team_id": teamID, "context_team_id": teamID,
		"context_enterprise_id": nil,
		"api_app_id":            s.me.AppID, "event": event, "type": "event_callback", "event_id": d.eventID,
		"event_time": s.lastTS / 1_000_000,
		"authorizations": []fields{{
			"enterprise_id": nil, "team_id": teamID, "user_id": s.me.ID, "is_bot": true, "is_enterprise_install": false,
		}},
		"is_ext_shared_channel": false, "event_context": "4-" + d.eventID,
	})
	must(err)
	d.payload = payload
	return d
}
