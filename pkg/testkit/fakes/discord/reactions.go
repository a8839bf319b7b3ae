package discord

import (
	"slices"
)

// reaction is one emoji under a message, with its users. The server's lock guards it.
type reaction struct {
	emoji Emoji
	users []string
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
	event := map[string]any{"user_id": by.ID, "message_id": m.ID, "emoji": emoji, "burst": false, "type": 0}
	if !on {
		name = "MESSAGE_REACTION_REMOVE"
	}
	if on {
		event["message_author_id"] = m.Author.ID
		if ch.guild != nil {
			event["member"] = ch.guild.member(by.ID)
		}
	}
	s.emitOf(ch, ch.intent(GuildMessageReactions, DirectMessageReactions), name, event)
}

// maxReactions is the documented number of emoji under one message.
const maxReactions = 20

// reacting is the emoji of a request about the reactions to a message.
func (s *Server) reacting(q *request, ch *channel) (Emoji, error) {
	emoji := q.path("emoji")
	switch {
	case !isEmoji(emoji):
		return Emoji{}, refuse(400, 10014, "Unknown Emoji")
	case ch.isThread() && ch.info.Metadata.Archived:
		return Emoji{}, archived()
	case !s.may(ch, ReadMessageHistory):
		return Emoji{}, missingPermissions()
	}
	q.call.Emoji = emoji
	return Emoji{Name: emoji}, nil
}

func (s *Server) createReaction(q *request, ch *channel, m *Message) (any, error) {
	emoji, err := s.reacting(q, ch)
	isNew := !slices.ContainsFunc(ch.reactions[m.ID], func(r *reaction) bool { return r.emoji == emoji })
	switch {
	case err != nil:
		return nil, err
	case !s.may(ch, AddReactions): // Discord lets the bot join in the reaction of another
		return nil, missingPermissions()
	case isNew && len(ch.reactions[m.ID]) >= maxReactions:
		return nil, refuse(400, 30010, "Maximum number of reactions reached (20)")
	}
	s.react(ch, m, s.me, emoji, true)
	return nil, nil
}

func (s *Server) deleteReaction(q *request, ch *channel, m *Message) (any, error) {
	emoji, err := s.reacting(q, ch)
	if err == nil {
		s.react(ch, m, s.me, emoji, false)
	}
	return nil, err
}

// userPage is the page of users, by id, that a request asks for.
func (s *Server) userPage(q *request, ids []string) ([]User, error) {
	const maxUsers, usualUsers = 100, 25
	limit, err := q.number("limit", usualUsers, 1, maxUsers)
	if err != nil {
		return nil, err
	}
	after, err := q.snowflake("after")
	if err != nil {
		return nil, err
	}
	users := []User{}
	for _, id := range slices.SortedFunc(slices.Values(ids), compareIDs) {
		if after == "" || compareIDs(id, after) > 0 {
			users = append(users, s.users[id])
		}
	}
	return users[:min(limit, len(users))], nil
}
