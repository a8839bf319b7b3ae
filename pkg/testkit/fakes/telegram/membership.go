package telegram

import (
	"fmt"
	"slices"
	"strings"
)

// Join adds a user to a group, as through a link.
func (p Place) Join(user User) Message {
	return p.changeMember(user, user, Member, Message{NewMembers: []User{user}})
}

// Leave makes a user leave a group.
func (p Place) Leave(user User) Message {
	return p.changeMember(user, user, Left, Message{LeftMember: &user})
}

// Remove removes and bans a user.
func (p Place) Remove(by, user User) Message {
	return p.changeMember(by, user, Kicked, Message{LeftMember: &user})
}

// AddBot adds the bot to a group, also after it was removed.
func (p Place) AddBot(by User) Message {
	return p.changeMember(by, p.s.me, Member, Message{NewMembers: []User{p.s.me}})
}

// RemoveBot removes the bot from a group: messages that it sends there are refused, because it was
// kicked.
func (p Place) RemoveBot(by User) { p.Remove(by, p.s.me) }

func (p Place) changeMember(by, user User, status string, m Message) Message {
	p.act(func(r *room) error {
		if r.chat.Type == Private || by != user && !r.in(by) {
			return fmt.Errorf("%s cannot do that there", by.FirstName)
		}
		p.s.setStatus(r, by, user, status)
		m.From = &by
		p.s.emitMessage("message", r, r.add(&m, 0, nil))
		return nil
	})
	return m
}

// Promote makes the bot an administrator, or an ordinary member again.
func (p Place) Promote(by User, admin bool) { p.Appoint(by, p.s.me, admin) }

// Appoint makes a user an administrator, or an ordinary member again.
func (p Place) Appoint(by, user User, admin bool) {
	status := Member
	if admin {
		status = Administrator
	}
	p.act(func(r *room) error {
		p.s.setStatus(r, by, user, status)
		return nil
	})
}

// Mute revokes the bot's right to send to a group, or grants it again.
func (p Place) Mute(muted bool) {
	p.act(func(r *room) error {
		r.muted = muted
		return nil
	})
}

// ForbidVoice makes a user take no voice and video messages, as users of Premium can, or take them again.
func (s *Server) ForbidVoice(by User, forbidden bool) {
	s.DM(by).act(func(r *room) error {
		r.voiceless = forbidden
		return nil
	})
}

// Block blocks the bot.
func (s *Server) Block(by User) { s.private(by, Kicked) }

// Unblock ends Block.
func (s *Server) Unblock(by User) { s.private(by, Member) }

func (s *Server) private(with User, status string) {
	s.DM(with).act(func(r *room) error {
		s.setStatus(r, with, s.me, status)
		return nil
	})
}

// Deactivate deletes a user's account. The bot gets no update.
func (s *Server) Deactivate(u User) { s.DM(u).end("user is deactivated") }

// DeleteGroup deletes a group. The bot gets no update.
func (p Place) DeleteGroup() { p.end("the group chat was deleted") }

func (p Place) end(reason string) {
	p.act(func(r *room) error {
		r.gone = reason
		return nil
	})
}

// SetPrivacy turns privacy mode on or off, at once and for every group.
func (s *Server) SetPrivacy(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.privacy = on
}

// Migrate turns a basic group into a supergroup: a new chat with the same users, whose
// message ids start again. Each of the two gets a service message with the id of the other.
func (p Place) Migrate(by User) Place {
	s := p.s
	next := Place{s: s}
	p.act(func(r *room) error {
		if r.chat.Type != Group || r.migrated != 0 {
			return fmt.Errorf("chat %d is not a basic group", p.ChatID)
		}
		next.ChatID = s.newChatID(Supergroup)
		to := s.newRoom(Chat{ID: next.ChatID, Type: Supergroup, Title: r.chat.Title})
		to.statuses = r.statuses
		s.emitMessage("message", r, r.add(&Message{From: &by, MigrateTo: next.ChatID}, 0, nil))
		s.emitMessage("message", to, to.add(&Message{From: &by, MigrateFrom: p.ChatID}, 0, nil))
		r.migrated = next.ChatID
		return nil
	})
	return next
}

// Chats are all chats in the order of their ids: groups before private chats.
func (s *Server) Chats() []Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Chat
	for _, r := range s.rooms {
		if r.migrated == 0 {
			all = append(all, r.chat)
		}
	}
	slices.SortFunc(all, func(a, b Chat) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	return all
}

// Topics are the topics of a forum, without General.
func (p Place) Topics() []ForumTopic {
	var all []ForumTopic
	p.act(func(r *room) error {
		for id, t := range r.topics {
			all = append(all, ForumTopic{Thread: id, Name: t.created.TopicCreated.Name,
				Color: t.created.TopicCreated.Color})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b ForumTopic) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Messages are those of a chat with all its topics, or of one topic, oldest first.
func (p Place) Messages() []Message {
	var all []Message
	p.act(func(r *room) error {
		all = r.sortedMessages()
		return nil
	})
	if p.ThreadID == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(m Message) bool { return !m.IsTopic || m.Thread != p.ThreadID })
}

// Members are the users and bots in the chat.
func (p Place) Members() []User {
	var all []User
	p.act(func(r *room) error {
		for id := range r.statuses {
			if u := p.s.users[id]; r.in(u) {
				all = append(all, u)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b User) int { return strings.Compare(a.FirstName, b.FirstName) })
	return all
}

// Reactions are the emoji under a message, by user.
func (p Place) Reactions(id int) map[int64][]string {
	all := map[int64][]string{}
	p.act(func(r *room) error {
		for user, emoji := range r.reactions[id] {
			if len(emoji) > 0 {
				all[user] = emoji
			}
		}
		return nil
	})
	return all
}
