package telegram

import (
	"fmt"
	"slices"
	"strings"
)

// Join lets somebody into a group.
func (p Place) Join(who User) Message {
	return p.comeOrGo(who, who, Member, Message{NewMembers: []User{who}})
}

// Leave lets somebody leave a group.
func (p Place) Leave(who User) Message {
	return p.comeOrGo(who, who, Left, Message{LeftMember: &who})
}

// Remove removes and bans somebody.
func (p Place) Remove(by, who User) Message {
	return p.comeOrGo(by, who, Kicked, Message{LeftMember: &who})
}

// AddBot adds the bot to a group, or adds it again.
func (p Place) AddBot(by User) Message {
	return p.comeOrGo(by, p.s.me, Member, Message{NewMembers: []User{p.s.me}})
}

// RemoveBot removes the bot from a group: what it sends there is refused as from one who was
// kicked.
func (p Place) RemoveBot(by User) { p.Remove(by, p.s.me) }

func (p Place) comeOrGo(by, who User, status string, m Message) Message {
	p.act(func(r *room) error {
		if r.chat.Type == Private || by != who && !r.in(by) {
			return fmt.Errorf("%s cannot do that there", by.FirstName)
		}
		p.s.standing(r, by, who, status)
		m.From = &by
		p.s.tell("message", r, r.add(&m, 0, nil))
		return nil
	})
	return m
}

// Promote makes the bot an administrator, or takes that back.
func (p Place) Promote(by User, admin bool) {
	status := Member
	if admin {
		status = Administrator
	}
	p.act(func(r *room) error {
		p.s.standing(r, by, p.s.me, status)
		return nil
	})
}

// Mute takes from the bot the right to send to a group, or gives it back.
func (p Place) Mute(muted bool) {
	p.act(func(r *room) error {
		r.muted = muted
		return nil
	})
}

// Block blocks the bot.
func (s *Server) Block(by User) { s.private(by, Kicked) }

// Unblock ends Block.
func (s *Server) Unblock(by User) { s.private(by, Member) }

func (s *Server) private(with User, status string) {
	s.DM(with).act(func(r *room) error {
		s.standing(r, with, s.me, status)
		return nil
	})
}

// Deactivate deletes a user's account; the bot is not told.
func (s *Server) Deactivate(u User) { s.DM(u).end("user is deactivated") }

// DeleteGroup deletes a group; the bot is not told.
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

// Migrate turns a basic group into a supergroup: a new chat with the same people, whose
// message ids start again. Each of the two gets a service message that names the other.
func (p Place) Migrate(by User) Place {
	s := p.s
	next := Place{s: s}
	p.act(func(r *room) error {
		if r.chat.Type != Group || r.migrated != 0 {
			return fmt.Errorf("chat %d is no basic group", p.ChatID)
		}
		next.ChatID = s.newChatID(Supergroup)
		to := s.newRoom(Chat{ID: next.ChatID, Type: Supergroup, Title: r.chat.Title})
		to.standings = r.standings
		s.tell("message", r, r.add(&Message{From: &by, MigrateTo: next.ChatID}, 0, nil))
		s.tell("message", to, to.add(&Message{From: &by, MigrateFrom: p.ChatID}, 0, nil))
		r.migrated = next.ChatID
		return nil
	})
	return next
}

// Chats are all chats, groups before people, in the order of their ids.
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

// Topics are the topics of a forum, without the General one.
func (p Place) Topics() []ForumTopic {
	var all []ForumTopic
	p.act(func(r *room) error {
		for id, t := range r.topics {
			all = append(all, ForumTopic{Thread: id, Name: t.created.TopicCreated.Name, Color: t.created.TopicCreated.Color})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b ForumTopic) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Messages are what stands in the place, oldest first: in all of a chat, unless the place is
// one topic of it.
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

// Members are the people and bots in the chat.
func (p Place) Members() []User {
	var all []User
	p.act(func(r *room) error {
		for id := range r.standings {
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
