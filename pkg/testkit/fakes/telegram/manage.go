package telegram

import (
	"maps"
	"slices"
)

// pinChatMessage returns the method that pins or unpins a message. In groups that takes a right.
func (s *Server) pinChatMessage(pin bool) func(params) (any, error) {
	return func(p params) (any, error) {
		if !pin && p.int("message_id", 0) == 0 {
			r, err := s.readable(p)
			if err != nil {
				return nil, err
			}
			r.pinned = 0
			return true, nil
		}
		r, m, err := s.message(p, "message to pin")
		switch {
		case err != nil:
			return nil, err
		case r.chat.Type != Private && !r.admin(s.me):
			return nil, badRequest("not enough rights to manage pinned messages in the chat")
		case !pin:
			if r.pinned == m.ID {
				r.pinned = 0
			}
			return true, nil
		}
		r.pinned = m.ID
		me := s.me
		r.add(&Message{From: &me, Pinned: quoted(m)}, m.topicID(), nil)
		return true, nil
	}
}

// topicID is the topic of a message, 0 for none.
func (m *Message) topicID() int {
	if m.IsTopic {
		return m.Thread
	}
	return 0
}

// getChatAdministrators leaves out other bots.
func (s *Server) getChatAdministrators(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	if r.chat.Type == Private {
		return nil, badRequest("there are no administrators in the private chat")
	}
	all := []ChatMember{}
	for _, id := range slices.Sorted(maps.Keys(r.statuses)) {
		if u := s.users[id]; r.admin(u) && (!u.IsBot || u.ID == s.me.ID) {
			all = append(all, r.member(u))
		}
	}
	return all, nil
}

func (s *Server) getChatMemberCount(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	n := 0
	for id := range r.statuses {
		if r.in(s.users[id]) {
			n++
		}
	}
	return n, nil
}

func (s *Server) setMyDescription(p params) (any, error) {
	if units(p.str("description")) > 512 {
		return nil, badRequest("BOT_DESCRIPTION_TOO_LONG")
	}
	s.about[p.str("language_code")] = p.str("description")
	return true, nil
}

func (s *Server) getMyDescription(p params) (any, error) {
	return map[string]string{"description": s.about[p.str("language_code")]}, nil
}

// ownTopic is the topic of a request, which the bot may manage.
func (s *Server) ownTopic(p params) (*room, int, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, 0, err
	}
	id := int(p.int("message_thread_id", 0))
	switch {
	case !r.chat.IsForum:
		return nil, 0, badRequest("the chat is not a forum")
	case r.topics[id] == nil:
		return nil, 0, badRequest("TOPIC_ID_INVALID")
	case !r.admin(s.me):
		return nil, 0, badRequest("not enough rights to manage topics in the chat")
	}
	return r, id, nil
}

// closeForumTopic returns the method that closes or reopens a topic.
func (s *Server) closeForumTopic(isClosed bool) func(params) (any, error) {
	return func(p params) (any, error) {
		r, id, err := s.ownTopic(p)
		switch {
		case err != nil:
			return nil, err
		case r.topics[id].closed == isClosed:
			return nil, badRequest("TOPIC_NOT_MODIFIED")
		}
		r.topics[id].closed = isClosed
		return true, nil
	}
}

func (s *Server) deleteForumTopic(p params) (any, error) {
	r, id, err := s.ownTopic(p)
	if err != nil {
		return nil, err
	}
	r.deleteTopic(id)
	return true, nil
}

func (r *room) deleteTopic(id int) {
	delete(r.topics, id)
	maps.DeleteFunc(r.messages, func(_ int, m *Message) bool { return m.IsTopic && m.Thread == id })
}

// ForbidVoice makes a user take no voice and video messages, as users of Premium can, or take them again.
func (s *Server) ForbidVoice(by User, forbidden bool) {
	s.DM(by).act(func(r *room) error {
		r.voiceless = forbidden
		return nil
	})
}
