package slack

import (
	"fmt"
	"maps"
	"slices"
)

// Join makes a user join a channel.
func (p Place) Join(user User) { p.Invite(user, user) }

// Invite adds a user to a channel.
func (p Place) Invite(by, user User) {
	p.act(func(r *room) error {
		switch {
		case r.Kind == DM || by.ID != user.ID && !r.in(by):
			return fmt.Errorf("%s cannot invite there", by.RealName)
		case r.in(user):
			return fmt.Errorf("%s is a member already", user.RealName)
		}
		p.s.enter(r, user, by)
		return nil
	})
}

// InviteBot adds the bot to a channel.
func (p Place) InviteBot(by User) { p.Invite(by, p.s.me) }

// enter adds a user, and emits that twice, as Slack does: as a membership, and as a message.
func (s *Server) enter(r *room, user, by User) {
	r.members[user.ID] = true
	s.emitMember("member_joined_channel", r, user, by)
	m := &Message{Subtype: "channel_join", User: user.ID, Text: user.Mention() + " has joined the channel"}
	if r.ID[0] == 'G' {
		m.Subtype, m.Text = "group_join", user.Mention()+" has joined the group"
	}
	if by.ID != user.ID {
		m.Inviter = by.ID
	}
	s.say(r, m, "")
}

// Leave makes a user leave a channel.
func (p Place) Leave(user User) { p.Kick(user, user) }

// Kick removes a user.
func (p Place) Kick(by, user User) {
	p.act(func(r *room) error {
		if r.Kind == DM || !r.in(user) || !r.in(by) {
			return fmt.Errorf("%s cannot do that there", by.RealName)
		}
		if user.ID == p.s.me.ID {
			p.s.emitChannel(r, "left", fields{"channel": r.ID, "actor_id": by.ID})
			delete(r.members, user.ID)
			return nil
		}
		p.s.emitMember("member_left_channel", r, user, user)
		m := &Message{Subtype: "channel_leave", User: user.ID, Text: user.Mention() + " has left the channel"}
		if r.ID[0] == 'G' {
			m.Subtype, m.Text = "group_leave", user.Mention()+" has left the group"
		}
		p.s.say(r, m, "")
		delete(r.members, user.ID)
		return nil
	})
}

// KickBot removes the bot from a channel.
func (p Place) KickBot(by User) { p.Kick(by, p.s.me) }

// SetTopic changes a channel's topic.
func (p Place) SetTopic(by User, topic string) {
	p.act(func(r *room) error {
		r.Topic = topic
		p.s.say(r, &Message{Subtype: "channel_topic", User: by.ID, Topic: topic,
			Text: by.Mention() + " set the channel's topic: " + topic}, "")
		return nil
	})
}

// Rename renames a channel.
func (p Place) Rename(by User, name string) {
	p.act(func(r *room) error {
		old := r.Name
		r.Name = name
		p.s.emitChannel(r, "rename", fields{
			"channel": fields{"id": r.ID, "name": name, "name_normalized": name, "created": r.Created,
				"is_channel": true, "is_mpim": false},
		})
		p.s.say(r, &Message{
			Subtype: "channel_name", User: by.ID, OldName: old, Name: name,
			Text: by.Mention() + " has renamed the channel from \"" + old + "\" to \"" + name + "\"",
		}, "")
		return nil
	})
}

// Archive archives a channel: posts to it are refused.
func (p Place) Archive(by User) {
	p.act(func(r *room) error {
		r.Archived = true
		p.s.emitChannel(r, "archive", fields{"channel": r.ID, "user": by.ID})
		return nil
	})
}

// DeleteChannel deletes a channel.
func (p Place) DeleteChannel() {
	p.act(func(r *room) error {
		p.s.emitChannel(r, "deleted", fields{"channel": r.ID})
		delete(p.s.rooms, r.ID)
		return nil
	})
}

// RenameUser renames a user, and returns the renamed user.
func (s *Server) RenameUser(u User, name string) User {
	return s.changeUser(u, func(u *User) { u.RealName, u.DisplayName = name, name })
}

// Appoint makes a user an admin of the workspace, or no longer one.
func (s *Server) Appoint(u User, admin bool) User {
	return s.changeUser(u, func(u *User) { u.Admin = admin })
}

func (s *Server) changeUser(u User, change func(*User)) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, known := s.users[u.ID]
	if !known {
		must(fmt.Errorf("no user %s", u.ID))
	}
	change(&changed)
	s.users[u.ID] = changed
	s.emit("users:read", fields{
		"type": "user_change", "user": userObject(changed), "cache_ts": s.lastTS / 1_000_000, "event_ts": s.nextTS(),
	})
	return changed
}

// Channels are all conversations in the order of their ids.
func (s *Server) Channels() []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Channel
	for _, r := range s.sortedRooms() {
		all = append(all, r.Channel)
	}
	return all
}

// Messages are those of a conversation with all its threads, or of one thread with its root, oldest
// first.
func (p Place) Messages() []Message {
	var all []Message
	p.act(func(r *room) error {
		for _, m := range r.messages {
			if p.ThreadTS == "" || m.TS == p.ThreadTS || m.ThreadTS == p.ThreadTS {
				all = append(all, m.snapshot())
			}
		}
		return nil
	})
	return all
}

// Members are the users and bots in the conversation.
func (p Place) Members() []User {
	var all []User
	p.act(func(r *room) error {
		for _, id := range slices.Sorted(maps.Keys(r.members)) {
			all = append(all, p.s.users[id])
		}
		return nil
	})
	return all
}

// Reactions are the users that reacted to a message, by the name of the emoji.
func (p Place) Reactions(ts string) map[string][]string {
	all := map[string][]string{}
	p.act(func(r *room) error {
		if m := r.find(ts); m != nil {
			for _, each := range m.snapshot().Reactions {
				all[each.Name] = each.Users
			}
		}
		return nil
	})
	return all
}

// UserByID is the user with an id.
func (s *Server) UserByID(id string) (User, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.users[id]
	return u, known
}
