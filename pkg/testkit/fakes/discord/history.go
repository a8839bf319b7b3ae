package discord

import (
	"encoding/json"
	"slices"
)

// snapshot is a copy of a message, which later changes do not affect.
func (m *Message) snapshot() Message {
	c := *m
	c.Mentions, c.Embeds, c.Attachments = slices.Clone(m.Mentions), slices.Clone(m.Embeds), slices.Clone(m.Attachments)
	if m.Poll != nil {
		c.Poll = m.Poll.copied()
	}
	return c
}

// shown is a copy of a message, whose files can be downloaded from now on.
func (s *Server) shown(m *Message) Message {
	c := m.snapshot()
	c.Attachments, c.Snapshots = s.sign(c.Attachments), slices.Clone(c.Snapshots)
	for i := range c.Snapshots {
		c.Snapshots[i].Message.Attachments = s.sign(c.Snapshots[i].Message.Attachments)
	}
	return c
}

// inAnswer is a message as in answers: with its reactions and the message to which it replies.
func (s *Server) inAnswer(ch *channel, m *Message) Message {
	c := s.shown(m)
	c.Reactions = ch.counts(m.ID, s.me.ID)
	if m.Type == ReplyMessage {
		c.Referenced = json.RawMessage("null")
		if of := ch.messages[m.Reference.MessageID]; of != nil {
			c.Referenced = s.quoted(of)
		}
	}
	if m.Type == ThreadStarter && ch.parent != nil {
		if of := ch.parent.messages[m.Reference.MessageID]; of != nil {
			c.Referenced = s.quoted(of)
		}
	}
	return c
}

// quoted is a message as another contains it: without the message to which it replies itself.
func (s *Server) quoted(of *Message) json.RawMessage {
	raw, _ := json.Marshal(s.shown(of)) // the fake's own types
	return raw
}

// inEvent is a message as in events: with its guild, and its author as a member.
func (s *Server) inEvent(ch *channel, m *Message) Message {
	c, kind := s.inAnswer(ch, m), ch.info.Type
	c.ChannelType = &kind
	if ch.guild != nil {
		c.GuildID = ch.guild.id
		if m.WebhookID == "" {
			c.Member = ch.guild.bare(m.Author.ID)
		}
	}
	return c
}

// getMessages answers with the newest first, without nonces.
func (s *Server) getMessages(q *request) (any, error) {
	const mostMessages, usualMessages = 100, 50
	ch, err := s.readable(q)
	if err != nil {
		return nil, err
	}
	limit, err := q.number("limit", usualMessages, 1, mostMessages)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"before", "after", "around"} {
		if id := q.query.Get(name); id != "" {
			if _, ok := snowflake(id); !ok {
				return nil, badSnowflake(name, id)
			}
		}
	}
	found := []Message{}
	if !s.may(ch, ReadMessageHistory) {
		return found, nil
	}
	for _, m := range slices.Backward(ch.between(q.query.Get("before"), q.query.Get("after"), q.query.Get("around"),
		limit)) {
		c := s.inAnswer(ch, m)
		c.Nonce = nil
		found = append(found, s.visible(c, ch.guild != nil, ^s.denied))
	}
	return found, nil
}

// between is at most limit messages, oldest first: those next after an id, around one, or else the
// newest before one.
func (ch *channel) between(before, after, around string, limit int) []*Message {
	all := ch.sorted()
	at := func(id string) int { // index of the first that is not older
		i, _ := slices.BinarySearchFunc(all, id, func(m *Message, id string) int { return compareIDs(m.ID, id) })
		return i
	}
	first, end := max(len(all)-limit, 0), len(all)
	switch {
	case around != "":
		first = max(at(around)-limit/2, 0)
		end = min(first+limit, len(all))
	case after != "":
		first = at(after)
		if first < len(all) && all[first].ID == after {
			first++
		}
		end = min(first+limit, len(all))
	case before != "":
		end = at(before)
		first = max(end-limit, 0)
	}
	return all[first:end]
}

func (s *Server) getMessage(q *request) (any, error) {
	ch, m, err := s.message(q)
	if err != nil {
		return nil, err
	}
	c := s.inAnswer(ch, m)
	c.Nonce = nil
	return s.visible(c, ch.guild != nil, ^s.denied), nil
}
