package discord

import (
	"cmp"
	"crypto/rand"
	"maps"
	"slices"
)

// webhook posts to a channel with a name of its own. Its token is all that one needs to use it.
type webhook struct {
	id, token, name string
	ch              *channel
}

// object is a webhook in answers.
func (w *webhook) object(s *Server) map[string]any {
	return map[string]any{
		"id": w.id, "type": 1, "guild_id": w.ch.guild.id, "channel_id": w.ch.info.ID, "name": w.name, "avatar": nil,
		"token": w.token, "application_id": s.me.ID, "user": s.me,
	}
}

// listWebhooks answers with the webhooks of the channels for which in holds, by age.
func (s *Server) listWebhooks(in func(*channel) bool) (any, error) {
	all := []map[string]any{}
	byAge := func(a, b *webhook) int { return compareIDs(a.id, b.id) }
	for _, w := range slices.SortedFunc(maps.Values(s.webhooks), byAge) {
		if in(w.ch) {
			all = append(all, w.object(s))
		}
	}
	return all, nil
}

func (s *Server) createWebhook(q *request, ch *channel) (any, error) {
	if ch.guild == nil || !s.may(ch, ManageWebhooks) {
		return nil, missingPermissions()
	}
	w := &webhook{id: s.newID(), token: rand.Text() + rand.Text(), ch: ch}
	var body struct {
		Name string `json:"name"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	w.name = body.Name
	s.webhooks[w.id] = w
	return w.object(s), nil
}

func (s *Server) getChannelWebhooks(_ *request, ch *channel) (any, error) {
	if !s.may(ch, ManageWebhooks) {
		return nil, missingPermissions()
	}
	return s.listWebhooks(func(other *channel) bool { return other == ch })
}

func (s *Server) getGuildWebhooks(_ *request, g *guild) (any, error) {
	if !s.mayIn(g, ManageWebhooks) {
		return nil, missingPermissions()
	}
	return s.listWebhooks(func(ch *channel) bool { return ch.guild == g })
}

// webhook is that of a request, which has its token.
func (s *Server) webhook(q *request) (*webhook, error) {
	w := s.webhooks[q.path("webhook")]
	switch {
	case w == nil:
		return nil, unknown(10015, "Webhook")
	case q.path("token") != w.token:
		return nil, refuse(401, 50027, "Invalid Webhook Token")
	}
	return w, nil
}

func (s *Server) deleteWebhook(q *request) (any, error) {
	w, err := s.webhook(q)
	if err != nil {
		return nil, err
	}
	delete(s.webhooks, w.id)
	return nil, nil
}

// executeWebhook posts a message. Without wait=true its sender does not get it.
func (s *Server) executeWebhook(q *request) (any, error) {
	if q.path("webhook") == s.me.ID {
		return s.followUp(q)
	}
	w, err := s.webhook(q)
	if err != nil {
		return nil, err
	}
	var body struct {
		outgoing
		Username string `json:"username"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	m, err := s.composeBy(q, w.ch, &body.outgoing)
	if err != nil {
		return nil, err
	}
	m.Author = User{ID: w.id, Username: cmp.Or(body.Username, w.name), Discriminator: "0000", Bot: true}
	m.WebhookID, m.ApplicationID = w.id, s.me.ID
	s.add(w.ch, m)
	s.emitMessage("MESSAGE_CREATE", w.ch, m)
	q.call.ChannelID, q.call.MessageID = w.ch.info.ID, m.ID
	if q.query.Get("wait") != "true" {
		return nil, nil
	}
	return s.inAnswer(w.ch, m), nil
}

// composeBy is a message of a webhook or of an interaction: it is no reply, and the bot's permissions do not limit it.
func (s *Server) composeBy(q *request, ch *channel, o *outgoing) (*Message, error) {
	files, err := o.check(q)
	if err != nil {
		return nil, err
	}
	o.Reference, o.Nonce = nil, nil
	return s.compose(q, ch, o, files)
}

// postedBy is the message of a request to a webhook or to an interaction.
func (s *Server) postedBy(q *request) (*channel, *Message, error) {
	if q.path("webhook") == s.me.ID {
		return s.followedUp(q)
	}
	w, err := s.webhook(q)
	if err != nil {
		return nil, nil, err
	}
	m := w.ch.messages[q.path("message")]
	if m == nil || m.WebhookID != w.id {
		return nil, nil, unknown(10008, "Message")
	}
	return w.ch, m, nil
}

func (s *Server) getWebhookMessage(q *request) (any, error) {
	ch, m, err := s.postedBy(q)
	if err != nil {
		return nil, err
	}
	return s.inAnswer(ch, m), nil
}

func (s *Server) editWebhookMessage(q *request) (any, error) {
	ch, m, err := s.postedBy(q)
	if err != nil {
		return nil, err
	}
	var o outgoing
	if err := q.decode(&o); err != nil {
		return nil, err
	}
	if err := s.rewrite(q, ch, m, &o); err != nil {
		return nil, err
	}
	return s.inAnswer(ch, m), nil
}

func (s *Server) deleteWebhookMessage(q *request) (any, error) {
	ch, m, err := s.postedBy(q)
	if err != nil {
		return nil, err
	}
	if to := s.interactions[q.path("token")]; to != nil {
		delete(to.posts, m.ID)
	}
	if ch.messages[m.ID] != nil {
		s.remove(ch, m.ID)
	}
	return nil, nil
}
