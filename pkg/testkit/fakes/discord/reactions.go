package discord

import (
	"slices"
	"strings"
)

// reaction is one emoji under a message, with its users. The server's lock guards it.
type reaction struct {
	emoji Emoji
	users []string
}

// Key is the emoji in routes: the character, or "name:id".
func (e Emoji) Key() string {
	if e.ID == "" {
		return e.Name
	}
	return e.Name + ":" + string(e.ID)
}

// String is the emoji in content.
func (e Emoji) String() string {
	if e.ID == "" {
		return e.Name
	}
	return "<:" + e.Key() + ">"
}

// emoji finds the emoji of a route: one of any guild, or a unicode one.
func (s *Server) emoji(key string) (Emoji, bool) {
	name, id, custom := strings.Cut(key, ":")
	if !custom {
		return Emoji{Name: key}, isEmoji(key)
	}
	for _, g := range s.guilds {
		for _, e := range g.emojis {
			if string(e.ID) == id && e.Name == name {
				return e, true
			}
		}
	}
	return Emoji{}, false
}

// counts are the reactions to a message as the bot sees them.
func (ch *channel) counts(message, me string) []Reaction {
	var all []Reaction
	for _, r := range ch.reactions[message] {
		all = append(all, Reaction{Emoji: r.emoji, Count: len(r.users), Me: slices.Contains(r.users, me)})
	}
	return all
}

// react adds or removes a user's reaction. Without a change it does nothing.
func (s *Server) react(ch *channel, m *Message, by User, emoji Emoji, on bool) {
	all := ch.reactions[m.ID]
	i := slices.IndexFunc(all, func(r *reaction) bool { return r.emoji == emoji })
	if i >= 0 && slices.Contains(all[i].users, by.ID) == on || i < 0 && !on {
		return
	}
	name := "MESSAGE_REACTION_ADD"
	switch {
	case i < 0:
		all = append(all, &reaction{emoji: emoji, users: []string{by.ID}})
	case on:
		all[i].users = append(all[i].users, by.ID)
	default:
		all[i].users = slices.DeleteFunc(all[i].users, func(id string) bool { return id == by.ID })
		if len(all[i].users) == 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	ch.reactions[m.ID] = all
	event := map[string]any{
		"user_id": by.ID, "channel_id": ch.info.ID, "message_id": m.ID, "emoji": emoji, "burst": false, "type": 0,
	}
	if !on {
		name = "MESSAGE_REACTION_REMOVE"
	}
	if ch.guild != nil {
		event["guild_id"] = ch.guild.id
	}
	if on {
		event["message_author_id"] = m.Author.ID
		if ch.guild != nil {
			event["member"] = ch.guild.member(by.ID)
		}
	}
	if s.sees(ch) {
		s.emit(ch.intent(GuildMessageReactions, DirectMessageReactions), name, event)
	}
	s.Notify()
}

// reacting is the message and the emoji of a request.
func (s *Server) reacting(q *request) (*channel, *Message, Emoji, error) {
	ch, m, err := s.message(q)
	if err != nil {
		return nil, nil, Emoji{}, err
	}
	emoji, known := s.emoji(q.path("emoji"))
	switch {
	case !known:
		return nil, nil, Emoji{}, refuse(400, 10014, "Unknown Emoji")
	case ch.isThread() && ch.info.Metadata.Archived:
		return nil, nil, Emoji{}, archived()
	case !s.may(ch, AddReactions|ReadMessageHistory):
		return nil, nil, Emoji{}, missingPermissions()
	}
	q.call.Emoji = emoji.Key()
	return ch, m, emoji, nil
}

func (s *Server) createReaction(q *request) (any, error) {
	ch, m, emoji, err := s.reacting(q)
	if err != nil {
		return nil, err
	}
	s.react(ch, m, s.me, emoji, true)
	return nil, nil
}

func (s *Server) deleteReaction(q *request) (any, error) {
	ch, m, emoji, err := s.reacting(q)
	if err != nil {
		return nil, err
	}
	s.react(ch, m, s.me, emoji, false)
	return nil, nil
}
