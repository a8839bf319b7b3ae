package discord

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The documented limits of webhooks.
const (
	maxWebhooks    = 15 // of a channel
	maxWebhookName = 80
)

// webhook posts to a channel with a name of its own. Its token is all that one needs to use it.
type webhook struct {
	id, token, name string
	ch              *channel
	owner           User
}

// object is a webhook in answers; one that is asked for by its token has no owner.
func (w *webhook) object(s *Server, byToken bool) map[string]any {
	fields := map[string]any{
		"id": w.id, "type": 1, "guild_id": w.ch.guild.id, "channel_id": w.ch.info.ID, "name": w.name, "avatar": nil,
		"token":          w.token,
		"application_id": s.me.ID, "url": s.Base() + "/api/webhooks/" + w.id + "/" + w.token,
	}
	if !byToken {
		fields["user"] = w.owner
	}
	return fields
}

// author is the user as which a webhook posts.
func (w *webhook) author(name string) User {
	return User{ID: w.id, Username: name, Discriminator: "0000", Bot: true}
}

// webhookName validates the name of a webhook, or of a message of one.
func webhookName(field, name string) (string, error) {
	name = strings.TrimSpace(name)
	lower := strings.ToLower(name)
	switch {
	case name == "" || utf8.RuneCountInString(name) > maxWebhookName:
		return "", invalid(field, "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between 1 and %d in length.",
			maxWebhookName))
	case strings.Contains(lower, "clyde") || strings.Contains(lower, "discord"):
		return "", invalid(field, "USERNAME_INVALID_CONTAINS", "Username cannot contain \""+lower+"\"")
	}
	return name, nil
}

// webhooksOf are the webhooks that a condition holds for, by age.
func (s *Server) webhooksOf(holds func(*webhook) bool) []map[string]any {
	all := []map[string]any{}
	for _, w := range s.webhooks {
		if holds(w) {
			all = append(all, w.object(s, false))
		}
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return compareIDs(a["id"].(string), b["id"].(string)) })
	return all
}

func (s *Server) webhooksChanged(ch *channel) {
	s.emit(GuildWebhooks, "WEBHOOKS_UPDATE", map[string]any{"guild_id": ch.guild.id, "channel_id": ch.info.ID})
}

// hooked is the channel of a request about its webhooks.
func (s *Server) hooked(q *request) (*channel, error) {
	ch, err := s.readable(q)
	switch {
	case err != nil:
		return nil, err
	case ch.guild == nil:
		return nil, notInPrivate()
	case ch.isThread() || ch.info.Type == Category:
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	case !s.may(ch, ManageWebhooks):
		return nil, missingPermissions()
	}
	return ch, nil
}

func (s *Server) createWebhook(q *request) (any, error) {
	ch, err := s.hooked(q)
	if err != nil {
		return nil, err
	}
	var body struct {
		Name string `json:"name"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	name, err := webhookName("name", body.Name)
	switch {
	case err != nil:
		return nil, err
	case len(s.webhooksOf(func(w *webhook) bool { return w.ch == ch })) >= maxWebhooks:
		return nil, refuse(400, 30007, fmt.Sprintf("Maximum number of webhooks reached (%d)", maxWebhooks))
	}
	w := &webhook{id: s.newID(), token: rand.Text() + rand.Text(), name: name, ch: ch, owner: s.me}
	s.webhooks[w.id] = w
	s.webhooksChanged(ch)
	return w.object(s, false), nil
}

func (s *Server) getChannelWebhooks(q *request) (any, error) {
	ch, err := s.hooked(q)
	if err != nil {
		return nil, err
	}
	return s.webhooksOf(func(w *webhook) bool { return w.ch == ch }), nil
}

func (s *Server) getGuildWebhooks(q *request) (any, error) {
	g, err := s.guildOf(q)
	switch {
	case err != nil:
		return nil, err
	case !s.mayIn(g, ManageWebhooks):
		return nil, missingPermissions()
	}
	return s.webhooksOf(func(w *webhook) bool { return w.ch.guild == g }), nil
}

// webhook is that of a request, which has its token, or is one of the bot with its permission.
func (s *Server) webhook(q *request) (*webhook, error) {
	id, err := q.id("webhook")
	if err != nil {
		return nil, err
	}
	w, token := s.webhooks[id], q.path("token")
	switch {
	case w == nil || s.channels[w.ch.info.ID] == nil:
		return nil, unknown(10015, "Webhook")
	case token != "" && token != w.token:
		return nil, refuse(401, 50027, "Invalid Webhook Token")
	case token == "" && !s.may(w.ch, ManageWebhooks):
		return nil, missingPermissions()
	}
	return w, nil
}

func (s *Server) getWebhook(q *request) (any, error) {
	w, err := s.webhook(q)
	if err != nil {
		return nil, err
	}
	return w.object(s, q.path("token") != ""), nil
}

// modifyWebhook changes a webhook. Its token does not suffice to move it.
func (s *Server) modifyWebhook(q *request) (any, error) {
	w, err := s.webhook(q)
	if err != nil {
		return nil, err
	}
	var body struct {
		Name    *string `json:"name"`
		Channel *string `json:"channel_id"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	to, byToken := w.ch, q.path("token") != ""
	if body.Channel != nil && !byToken {
		if to = s.channels[*body.Channel]; to == nil || to.guild != w.ch.guild || to.isThread() {
			return nil, unknown(10003, "Channel")
		}
	}
	if body.Name != nil {
		if w.name, err = webhookName("name", *body.Name); err != nil {
			return nil, err
		}
	}
	w.ch = to
	s.webhooksChanged(to)
	return w.object(s, byToken), nil
}

func (s *Server) deleteWebhook(q *request) (any, error) {
	w, err := s.webhook(q)
	if err != nil {
		return nil, err
	}
	delete(s.webhooks, w.id)
	s.webhooksChanged(w.ch)
	return nil, nil
}

// place is the channel, or the thread of it, that a request to a webhook is about.
func (s *Server) place(q *request, w *webhook) (*channel, error) {
	id := q.query.Get("thread_id")
	if id == "" {
		return w.ch, nil
	}
	t := s.channels[id]
	if t == nil || t.parent != w.ch {
		return nil, unknown(10003, "Channel")
	}
	return t, nil
}

// webhookRequest is the body of a message of a webhook.
type webhookRequest struct {
	outgoing
	Username   string `json:"username"`
	ThreadName string `json:"thread_name"`
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
	ch, err := s.place(q, w)
	if err != nil {
		return nil, err
	}
	var body webhookRequest
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	name := w.name
	if body.Username != "" {
		if name, err = webhookName("username", body.Username); err != nil {
			return nil, err
		}
	}
	switch inForum := ch.info.Type == Forum; {
	case inForum && body.ThreadName == "":
		return nil, refuse(400, 220001, "Webhooks posted to forum channels must have a thread_name or thread_id")
	case !inForum && body.ThreadName != "":
		return nil, refuse(400, 220003, "Webhooks can only create threads in forum channels")
	}
	m, err := s.composeBy(q, ch, &body.outgoing)
	if err != nil {
		return nil, err
	}
	m.Author, m.WebhookID, m.ApplicationID = w.author(name), w.id, s.me.ID
	if ch.info.Type == Forum {
		ch = s.openThread(ch, PublicThread, "", body.ThreadName, m.Author)
		m.ID = ch.info.ID
	}
	s.add(ch, m)
	s.emitMessage("MESSAGE_CREATE", ch, m)
	return s.awaited(q, ch, m), nil
}

// composeBy is a message of a webhook or of an interaction: it is no reply, and the bot's permissions do not limit it.
func (s *Server) composeBy(q *request, ch *channel, o *outgoing) (*Message, error) {
	files, err := q.files()
	if err == nil {
		err = o.check(files)
	}
	if err != nil {
		return nil, err
	}
	if o.Content != nil {
		q.call.Text = *o.Content
	}
	o.Reference, o.Nonce, o.Stickers = nil, nil, nil
	return s.compose(q, ch, o, files)
}

// awaited is the answer with a message, if the request asks for one.
func (s *Server) awaited(q *request, ch *channel, m *Message) any {
	q.call.ChannelID, q.call.MessageID = ch.info.ID, m.ID
	if wait := q.query.Get("wait"); wait != "true" && wait != "1" {
		return nil
	}
	return s.inAnswer(ch, m)
}

// webhookMessage is the message of a request: one that the webhook has posted.
func (s *Server) webhookMessage(q *request) (*channel, *Message, error) {
	w, err := s.webhook(q)
	if err != nil {
		return nil, nil, err
	}
	ch, err := s.place(q, w)
	if err != nil {
		return nil, nil, err
	}
	m := ch.messages[q.path("message")]
	if m == nil || m.WebhookID != w.id {
		return nil, nil, unknown(10008, "Message")
	}
	return ch, m, nil
}

// postedBy is the message of a request to a webhook or to an interaction.
func (s *Server) postedBy(q *request) (*channel, *Message, error) {
	if q.path("webhook") != s.me.ID {
		return s.webhookMessage(q)
	}
	to, m, err := s.followedUp(q)
	if err != nil {
		return nil, nil, err
	}
	return to.ch, m, nil
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
