package slack

import (
	"fmt"
	"maps"
	"slices"
)

// Join lets somebody into a channel by himself.
func (p Place) Join(who User) { p.Invite(who, who) }

// Invite lets somebody in.
func (p Place) Invite(by, who User) {
	p.act(func(r *room) error {
		switch {
		case r.Kind == DM || by.ID != who.ID && !r.in(by):
			return fmt.Errorf("%s cannot invite there", by.RealName)
		case r.in(who):
			return fmt.Errorf("%s is there already", who.RealName)
		}
		p.s.enter(r, who, by)
		return nil
	})
}

// InviteBot adds the bot to a channel.
func (p Place) InviteBot(by User) { p.Invite(by, p.s.me) }

// enter lets somebody in and tells of it twice, as Slack does: as a membership, and as a
// message.
func (s *Server) enter(r *room, who, by User) {
	r.members[who.ID] = true
	s.tellMember("member_joined_channel", r, who, by)
	m := &Message{Subtype: "channel_join", User: who.ID, Text: who.Mention() + " has joined the channel"}
	if r.ID[0] == 'G' {
		m.Subtype, m.Text = "group_join", who.Mention()+" has joined the group"
	}
	if by.ID != who.ID {
		m.Inviter = by.ID
	}
	s.say(r, m, "")
}

// Leave lets somebody leave a channel.
func (p Place) Leave(who User) { p.Kick(who, who) }

// Kick removes somebody.
func (p Place) Kick(by, who User) {
	p.act(func(r *room) error {
		if r.Kind == DM || !r.in(who) || !r.in(by) {
			return fmt.Errorf("%s cannot do that there", by.RealName)
		}
		if who.ID == p.s.me.ID {
			p.s.tellChannel(r, "left", map[string]any{"channel": r.ID, "actor_id": by.ID})
			delete(r.members, who.ID)
			return nil
		}
		p.s.tellMember("member_left_channel", r, who, who)
		m := &Message{Subtype: "channel_leave", User: who.ID, Text: who.Mention() + " has left the channel"}
		if r.ID[0] == 'G' {
			m.Subtype, m.Text = "group_leave", who.Mention()+" has left the group"
		}
		p.s.say(r, m, "")
		delete(r.members, who.ID)
		return nil
	})
}

// KickBot removes the bot from a channel.
func (p Place) KickBot(by User) { p.Kick(by, p.s.me) }

// SetTopic changes a channel's topic.
func (p Place) SetTopic(by User, topic string) {
	p.act(func(r *room) error {
		r.Topic = topic
		p.s.say(r, &Message{Subtype: "channel_topic", User: by.ID, Topic: topic, Text: by.Mention() + " set the channel's topic: " + topic}, "")
		return nil
	})
}

// Rename renames a channel.
func (p Place) Rename(by User, name string) {
	p.act(func(r *room) error {
		old := r.Name
		r.Name = name
		p.s.tellChannel(r, "rename", map[string]any{
			"channel": map[string]any{"id": r.ID, "name": name, "name_normalized": name, "created": r.Created, "is_channel": true, "is_mpim": false},
		})
		p.s.say(r, &Message{
			Subtype: "channel_name", User: by.ID, OldName: old, Name: name,
			Text: by.Mention() + " has renamed the channel from \"" + old + "\" to \"" + name + "\"",
		}, "")
		return nil
	})
}

// Archive archives a channel: nobody can post to it.
func (p Place) Archive(by User) { p.archive(by, true) }

// Unarchive ends Archive.
func (p Place) Unarchive(by User) { p.archive(by, false) }

func (p Place) archive(by User, archived bool) {
	p.act(func(r *room) error {
		r.Archived = archived
		change := "unarchive"
		if archived {
			change = "archive"
		}
		p.s.tellChannel(r, change, map[string]any{"channel": r.ID, "user": by.ID})
		return nil
	})
}

// DeleteChannel deletes a channel.
func (p Place) DeleteChannel() {
	p.act(func(r *room) error {
		p.s.tellChannel(r, "deleted", map[string]any{"channel": r.ID})
		delete(p.s.rooms, r.ID)
		return nil
	})
}

// RenameUser gives somebody another name, and returns the user as it is now.
func (s *Server) RenameUser(u User, name string) User {
	return s.changeUser(u, func(u *User) { u.RealName, u.DisplayName = name, name })
}

// Deactivate ends somebody's account.
func (s *Server) Deactivate(u User) User { return s.changeUser(u, func(u *User) { u.Deleted = true }) }

func (s *Server) changeUser(u User, change func(*User)) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, known := s.users[u.ID]
	if !known {
		must(fmt.Errorf("no user %s", u.ID))
	}
	change(&changed)
	s.users[u.ID] = changed
	s.emit("user_change", "users:read", map[string]any{
		"type": "user_change", "user": s.person(changed), "cache_ts": s.lastTS / 1_000_000, "event_ts": s.nextTS(),
	})
	return changed
}

// OpenHome opens a tab of the app's home: "home" or "messages".
func (s *Server) OpenHome(by User, tab string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit("app_home_opened", "", map[string]any{
		"type": "app_home_opened", "user": by.ID, "channel": s.dm(by).ID, "tab": tab, "event_ts": s.nextTS(),
	})
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

// Messages are what stands in the place, oldest first: in all of a conversation, or in one
// thread of it with its beginning.
func (p Place) Messages() []Message {
	var all []Message
	p.act(func(r *room) error {
		for _, m := range r.messages {
			if p.ThreadTS == "" || m.TS == p.ThreadTS || m.ThreadTS == p.ThreadTS {
				all = append(all, m.shown())
			}
		}
		return nil
	})
	return all
}

// Members are the people and bots in the conversation.
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

// Reactions are who reacted to a message, by the name of the emoji.
func (p Place) Reactions(ts string) map[string][]string {
	all := map[string][]string{}
	p.act(func(r *room) error {
		if m := r.find(ts); m != nil {
			for _, each := range m.shown().Reactions {
				all[each.Name] = each.Users
			}
		}
		return nil
	})
	return all
}

// UserByID is somebody by an id.
func (s *Server) UserByID(id string) (User, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.users[id]
	return u, known
}
