package telegram

import "fmt"

// DirectMessages creates the direct messages of a channel, of which the bot is an administrator.
func (s *Server) DirectMessages(channel string) Place {
	p := s.createRoom(Chat{Type: Supergroup, Title: channel, IsDirect: true}, nil)
	p.act(func(r *room) error {
		r.statuses[s.me.ID] = Administrator
		return nil
	})
	return p
}

// Subscriber is the topic of one subscriber in direct messages, who alone writes and reads there.
func (p Place) Subscriber(u User) Place {
	p.act(func(r *room) error {
		if !r.chat.IsDirect {
			return fmt.Errorf("chat %d is no direct messages of a channel", p.ChatID)
		}
		r.statuses[u.ID] = Member
		r.direct[u.ID] = &DirectTopic{ID: u.ID, User: u}
		return nil
	})
	p.DirectID = u.ID
	return p
}

// ownTopic lets a user of direct messages write and answer only in their own topic.
func (r *room) ownTopic(from User, topic int64, replyTo *Message) error {
	if !r.chat.IsDirect {
		return nil
	}
	if topic != from.ID || replyTo != nil && replyTo.DirectTopic.ID != topic {
		return fmt.Errorf("%s can write to the topic %d alone", from.FirstName, from.ID)
	}
	return nil
}

// directTo is the topic of direct messages that a request names. There Telegram wants one, elsewhere it takes none.
func (r *room) directTo(p params, replyTo *Message) (*DirectTopic, error) {
	id := p.int("direct_messages_topic_id", 0)
	switch {
	case !r.chat.IsDirect && id != 0:
		return nil, badRequest("the chat isn't a channel direct messages chat")
	case !r.chat.IsDirect:
		return nil, nil
	case id == 0:
		return nil, badRequest("channel direct messages topic must be specified")
	case r.direct[id] == nil:
		return nil, badRequest("topic not found")
	case replyTo != nil && replyTo.DirectTopic.ID != id:
		return nil, badRequest("message to be replied not found")
	}
	return r.direct[id], nil
}
