package telegram

import (
	"maps"
	"slices"
)

// pinChatMessage pins a message, which takes a right in groups. Nothing shows the pinned messages.
func (s *Server) pinChatMessage(p params) (any, error) {
	r, _, err := s.message(p, "message to pin")
	switch {
	case err != nil:
		return nil, err
	case r.chat.Type != Private && !r.admin(s.me):
		return nil, badRequest("not enough rights to manage pinned messages in the chat")
	}
	return true, nil
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
	all := []fields{}
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

// ForbidVoice makes a user take no voice and video messages, as users of Premium can, or take them again.
func (s *Server) ForbidVoice(by User, forbidden bool) {
	s.DM(by).act(func(r *room) error {
		r.voiceless = forbidden
		return nil
	})
}
