package slack

import "regexp"

const (
	// maxReactions is how many different emoji a message can have.
	maxReactions = 50
	// maxReactors is how many users of a reaction answers list that are not to be full; their count is right.
	// Slack names no number.
	maxReactors = 25
)

// emojiForm matches the name of an emoji.
var emojiForm = regexp.MustCompile(`^[a-z0-9_+'-]+(::skin-tone-[2-6])?$`)

// reactable is the message of a request.
func (s *Server) reactable(p params) (*room, *Message, error) {
	r := s.rooms[p.str("channel")]
	switch {
	case p.str("channel") == "" || p.str("timestamp") == "":
		return nil, nil, errorCode("no_item_specified")
	case r == nil || !s.sees(r):
		return nil, nil, errorCode("channel_not_found")
	case r.Archived:
		return nil, nil, errorCode("is_archived")
	case !r.in(s.me):
		return nil, nil, errorCode("not_in_channel")
	case !tsForm.MatchString(p.str("timestamp")):
		return nil, nil, errorCode("bad_timestamp")
	}
	m := r.find(p.str("timestamp"))
	if m == nil || m.isTombstoned {
		return nil, nil, errorCode("message_not_found")
	}
	return r, m, nil
}

var tsForm = regexp.MustCompile(`^[0-9]{10}\.[0-9]{6}$`)

func (s *Server) addReaction(p params) (any, error) {
	r, m, err := s.reactable(p)
	name := p.str("name")
	switch {
	case err != nil:
		return nil, err
	case !knownEmoji(name):
		return nil, errorCode("invalid_name")
	case len(m.Reactions) >= maxReactions:
		return nil, errorCode("too_many_emoji")
	case !m.react(s.me.ID, name, true):
		return nil, errorCode("already_reacted")
	}
	s.emitReaction(r, m, s.me.ID, name, true)
	return fields{}.ok(), nil
}

func (s *Server) removeReaction(p params) (any, error) {
	r, m, err := s.reactable(p)
	name := p.str("name")
	switch {
	case err != nil:
		return nil, err
	case !knownEmoji(name):
		return nil, errorCode("invalid_name")
	case !m.react(s.me.ID, name, false):
		return nil, errorCode("no_reaction")
	}
	s.emitReaction(r, m, s.me.ID, name, false)
	return fields{}.ok(), nil
}

func (s *Server) getReactions(p params) (any, error) {
	r, m, err := s.reactable(p)
	if err != nil {
		return nil, err
	}
	shown := m.snapshot()
	if !p.bool("full") {
		shown = shown.withReactors(maxReactors)
	}
	return fields{"type": "message", "channel": r.ID, "message": shown}.ok(), nil
}

// withReactors leaves out users of each reaction above a number. The message is a snapshot.
func (m Message) withReactors(most int) Message {
	for i := range m.Reactions {
		m.Reactions[i].Users = m.Reactions[i].Users[:min(most, len(m.Reactions[i].Users))]
	}
	return m
}
