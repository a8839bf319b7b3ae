package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// room is a conversation with its contents. The server's lock guards it.
type room struct {
	Channel
	members   map[string]bool
	messages  []*Message // by their ts
	odd       []json.RawMessage
	ephemeral []Message
	sessions  map[string]string // status of the agent's session by the ts of the thread
}

func (s *Server) newRoom(c Channel, members ...User) *room {
	c.Created = time.Now().Unix()
	r := &room{Channel: c, members: map[string]bool{}}
	for _, u := range members {
		r.members[u.ID] = true
	}
	s.rooms[c.ID] = r
	return r
}

func (r *room) in(u User) bool { return r.members[u.ID] }

// sees reports whether the bot can see the conversation.
func (s *Server) sees(r *room) bool { return r.in(s.me) || r.Kind == Public }

// readable is the conversation of a request, if the bot may read it. right is "read" or "history", the second half of
// the scope.
func (s *Server) readable(p params, right string) (*room, error) {
	r := s.rooms[p.str("channel")]
	if r == nil || !s.sees(r) {
		return nil, errorCode("channel_not_found")
	}
	if err := s.need(scopeFor(r.Kind, right)); err != nil {
		return nil, err
	}
	if right == "history" && !r.in(s.me) {
		return nil, errorCode("not_in_channel")
	}
	return r, nil
}

// writable is the conversation of a request, if the bot may post to it. The id of a user is that of
// the DM.
func (s *Server) writable(name string) (*room, error) {
	if u, ok := s.users[name]; ok && !u.IsBot() {
		return s.dm(u), nil
	}
	r := s.rooms[name]
	if r == nil {
		r = s.roomNamed(name)
	}
	switch {
	case r == nil || !s.sees(r):
		return nil, errorCode("channel_not_found")
	case r.Archived:
		return nil, errorCode("is_archived")
	case !r.in(s.me) && !s.may("chat:write.public"):
		return nil, errorCode("not_in_channel")
	}
	return r, nil
}

// roomNamed finds a channel by its name, as Slack still does for posts.
func (s *Server) roomNamed(name string) *room {
	name = strings.TrimPrefix(name, "#")
	for _, r := range s.rooms {
		if name != "" && r.Name == name && (r.Kind == Public || r.Kind == Private) {
			return r
		}
	}
	return nil
}

// dm is the conversation of the bot with a user.
func (s *Server) dm(with User) *room {
	for _, r := range s.rooms {
		if r.Kind == DM && r.With == with.ID {
			return r
		}
	}
	return s.newRoom(Channel{ID: s.id("D"), Kind: DM, With: with.ID}, with, s.me)
}

// find is the message with a timestamp; nil if there is none.
func (r *room) find(ts string) *Message {
	i := slices.IndexFunc(r.messages, func(m *Message) bool { return m.TS == ts })
	if i < 0 {
		return nil
	}
	return r.messages[i]
}

// root is the first message of the thread with a timestamp, which may be that of a reply.
func (r *room) root(ts string) *Message {
	m := r.find(ts)
	if m != nil && m.ThreadTS != "" && m.ThreadTS != m.TS {
		return r.find(m.ThreadTS)
	}
	return m
}

// remove removes a message. The root of a thread becomes a tombstone.
func (r *room) remove(m *Message) (tombstone bool) {
	if m.ReplyCount > 0 {
		m.Subtype, m.Text, m.isTombstoned = "tombstone", "This message was deleted.", true
		m.User, m.BotID, m.Files, m.Blocks, m.Reactions, m.Metadata = "USLACKBOT", "", nil, nil, nil, nil
		return true
	}
	r.messages = slices.DeleteFunc(r.messages, func(other *Message) bool { return other == m })
	if root := r.root(m.ThreadTS); root != nil && root != m && root.ReplyCount > 0 {
		root.ReplyCount--
	}
	return false
}

// nextTS is a unique timestamp, "<seconds>.<microseconds>".
func (s *Server) nextTS() string {
	s.lastTS = max(s.o.Now().UnixMicro(), s.lastTS+1)
	const million = 1_000_000
	return fmt.Sprintf("%d.%06d", s.lastTS/million, s.lastTS%million)
}

// add adds a message to a conversation, and to the thread of threadTS, which must exist.
func (s *Server) add(r *room, m *Message, threadTS string) *Message {
	m.Type, m.TS = "message", s.nextTS()
	if root := r.root(threadTS); root != nil {
		m.ThreadTS, m.ParentUser = root.TS, root.User
		root.ThreadTS, root.LatestReply = root.TS, m.TS
		root.ReplyCount++
		if author := cmp.Or(m.User, m.BotID); !slices.Contains(root.ReplyUsers, author) {
			root.ReplyUsers = append(root.ReplyUsers, author)
		}
		if m.Subtype == "thread_broadcast" {
			short := root.snapshot()
			m.Root, m.isBroadcast = &short, true
		}
	}
	r.messages = append(r.messages, m)
	return m
}

// react adds or removes a reaction, and reports whether that is a change.
func (m *Message) react(by, name string, add bool) bool {
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == name })
	had := i >= 0 && slices.Contains(m.Reactions[i].Users, by)
	switch {
	case had == add:
		return false
	case add && i < 0:
		m.Reactions = append(m.Reactions, Reaction{Name: name, Users: []string{by}, Count: 1})
	case add:
		m.Reactions[i].Users = append(m.Reactions[i].Users, by)
		m.Reactions[i].Count++
	default:
		r := &m.Reactions[i]
		r.Users = slices.DeleteFunc(r.Users, func(u string) bool { return u == by })
		r.Count--
		m.Reactions = slices.DeleteFunc(m.Reactions, func(r Reaction) bool { return r.Count == 0 })
	}
	return true
}

// info is a conversation as in answers.
func (s *Server) info(r *room) fields {
	c := fields{
		"id": r.ID, "name": r.Name, "name_normalized": r.Name, "created": r.Created, "creator": r.Creator,
		"context_team_id": teamID, "is_im": r.Kind == DM, "is_mpim": r.Kind == GroupDM,
		"is_channel": r.Kind == Public || r.Kind == Private && r.ID[0] == 'C',
		"is_group":   r.Kind == Private && r.ID[0] == 'G',
		"is_private": r.Kind == Private || r.Kind == GroupDM, "is_archived": r.Archived, "is_member": r.in(s.me),
	}
	if r.Kind == DM {
		delete(c, "name")
		c["user"] = r.With
		return c
	}
	c["topic"], c["purpose"], c["num_members"] = fields{"value": r.Topic}, fields{"value": ""}, len(r.members)
	return c
}

// sortedRooms are all conversations by their ids.
func (s *Server) sortedRooms() []*room {
	var all []*room
	for _, id := range slices.Sorted(maps.Keys(s.rooms)) {
		all = append(all, s.rooms[id])
	}
	return all
}
