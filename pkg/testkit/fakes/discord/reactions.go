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
	case ch.isThread() && ch.info.Metadata.Archived && !strings.HasPrefix(q.call.Route, "GET "):
		return nil, nil, Emoji{}, archived()
	case !s.may(ch, ReadMessageHistory):
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
	isNew := !slices.ContainsFunc(ch.reactions[m.ID], func(r *reaction) bool { return r.emoji == emoji })
	switch {
	case !s.may(ch, AddReactions): // Discord lets the bot join in the reaction of another
		return nil, missingPermissions()
	case isNew && len(ch.reactions[m.ID]) >= maxReactions:
		return nil, refuse(400, 30010, "Maximum number of reactions reached (20)")
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

// clearing is reacting for a call that removes the reactions of others.
func (s *Server) clearing(q *request) (*channel, *Message, error) {
	ch, m, err := s.message(q)
	switch {
	case err != nil:
		return nil, nil, err
	case ch.guild == nil:
		return nil, nil, notInPrivate()
	case ch.isThread() && ch.info.Metadata.Archived:
		return nil, nil, archived()
	case !s.may(ch, ManageMessages):
		return nil, nil, missingPermissions()
	}
	return ch, m, nil
}

func (s *Server) deleteUserReaction(q *request) (any, error) {
	ch, m, err := s.clearing(q)
	if err != nil {
		return nil, err
	}
	emoji, known := s.emoji(q.path("emoji"))
	user, found := s.users[q.path("user")]
	switch {
	case !known:
		return nil, refuse(400, 10014, "Unknown Emoji")
	case !found:
		return nil, unknown(10013, "User")
	}
	s.react(ch, m, user, emoji, false)
	return nil, nil
}

func (s *Server) deleteEmojiReactions(q *request) (any, error) {
	ch, m, err := s.clearing(q)
	if err != nil {
		return nil, err
	}
	emoji, known := s.emoji(q.path("emoji"))
	if !known {
		return nil, refuse(400, 10014, "Unknown Emoji")
	}
	s.clearEmoji(ch, m, emoji)
	return nil, nil
}

func (s *Server) clearEmoji(ch *channel, m *Message, emoji Emoji) {
	left := slices.DeleteFunc(slices.Clone(ch.reactions[m.ID]), func(r *reaction) bool { return r.emoji == emoji })
	if len(left) == len(ch.reactions[m.ID]) {
		return
	}
	ch.reactions[m.ID] = left
	s.emitOf(ch, ch.intent(GuildMessageReactions, DirectMessageReactions), "MESSAGE_REACTION_REMOVE_EMOJI",
		map[string]any{"message_id": m.ID, "emoji": emoji})
}

func (s *Server) deleteAllReactions(q *request) (any, error) {
	ch, m, err := s.clearing(q)
	if err != nil {
		return nil, err
	}
	s.clearReactions(ch, m)
	return nil, nil
}

func (s *Server) clearReactions(ch *channel, m *Message) {
	delete(ch.reactions, m.ID)
	s.emitOf(ch, ch.intent(GuildMessageReactions, DirectMessageReactions), "MESSAGE_REACTION_REMOVE_ALL",
		map[string]any{"message_id": m.ID})
}

// ClearReactions removes all reactions to a message, as a moderator does.
func (p Place) ClearReactions(id string) {
	must(p.withMessage(id, func(ch *channel, m *Message) error {
		p.s.clearReactions(ch, m)
		return nil
	}))
}

// getReactions answers with the users of an emoji under a message, by id. Type 1 is for super reactions, of which there
// are none.
func (s *Server) getReactions(q *request) (any, error) {
	ch, m, emoji, err := s.reacting(q)
	if err != nil {
		return nil, err
	}
	kind, err := q.number("type", 0, 0, 1)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range ch.reactions[m.ID] {
		if r.emoji == emoji && kind == 0 {
			ids = r.users
		}
	}
	return s.userPage(q, ids)
}

// userPage is the page of users, by id, that a request asks for.
func (s *Server) userPage(q *request, ids []string) ([]User, error) {
	const maxUsers, usualUsers = 100, 25
	limit, err := q.number("limit", usualUsers, 1, maxUsers)
	if err != nil {
		return nil, err
	}
	after := q.query.Get("after")
	if _, ok := snowflake(after); after != "" && !ok {
		return nil, badSnowflake("after", after)
	}
	users := []User{}
	for _, id := range slices.SortedFunc(slices.Values(ids), compareIDs) {
		if after == "" || compareIDs(id, after) > 0 {
			users = append(users, s.users[id])
		}
	}
	return users[:min(limit, len(users))], nil
}
