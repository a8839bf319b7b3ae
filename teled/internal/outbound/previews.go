package outbound

import (
	"context"
	"maps"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// editEvery is how often the message of a preview is changed: a group takes 20 messages and edits a minute.
const editEvery = 3 * time.Second

// PreviewEvery implements adapter.Previewer. A preview is a message that is changed, in private chats too: while a bot
// shows a draft (sendMessageDraft), Telegram's Android app lets its user send nothing, not even /stop.
func (s *Sender) PreviewEvery(store.Lane) time.Duration { return editEvery }

// ShowPreview implements adapter.Previewer.
func (s *Sender) ShowPreview(ctx context.Context, p *adapter.Preview) (platformID string, err error) {
	m := &msg.Message{ChatJID: p.In.ChatJID, ThreadID: p.In.ThreadID, ReplyToID: p.ReplyTo}
	address, err := s.addressOf(m)
	if err != nil {
		return "", &adapter.Failure{Class: msg.Permanent, Err: err}
	}
	c := previewCall(p)
	if p.PlatformID != "" {
		c.method = "editMessageText"
		c = c.about(p.PlatformID)
		c.params[keyboard] = oneButton(msg.StopLabel, msg.StopData(p.Turn))
	}
	for key, value := range address.params {
		if key == "chat_id" || c.sends() {
			c.params[key] = value
		}
	}
	c.of.reply, c.of.topic = address.of.reply, address.of.topic
	id, err := s.doPreview(ctx, m, c)
	if err != nil {
		return "", s.previewFailure(ctx, m, err)
	}
	if p.PlatformID != "" {
		return p.PlatformID, nil
	}
	return id, nil
}

// previewCall is the call that sends the text of a preview.
func previewCall(p *adapter.Preview) call {
	line := render.TelegramTail(p.LineMarkdown(), maxText/2)
	room := maxText
	if line.Text != "" {
		room -= render.UTF16Len(line.Text) + 2
	}
	shown := render.TelegramTail(p.Text, room)
	if line.Text != "" && shown.Text != "" {
		shown.Text += "\n\n"
	}
	at := render.UTF16Len(shown.Text)
	for _, e := range line.Entities {
		e.Offset += at
		shown.Entities = append(shown.Entities, e)
	}
	return call{method: "sendMessage", text: "text", params: telegramapi.Params{
		"text": shown.Text + line.Text, "entities": shown.Entities,
		"link_preview_options": map[string]bool{"is_disabled": true},
	}}
}

// doPreview makes a call, or the same without its button or formatting, and returns the id of the message it made.
func (s *Sender) doPreview(ctx context.Context, m *msg.Message, c call) (id string, err error) {
	id, err = s.do(ctx, m, c)
	if c.params[keyboard] != nil && keyboardRefused(err) {
		c = *c.without(keyboard)
		id, err = s.do(ctx, m, c)
	}
	if c.formatted() && telegramapi.RefusedFor(err, "entit") {
		id, err = s.do(ctx, m, *c.plain())
	}
	if telegramapi.RefusedFor(err, notModified) { // it has this text already
		err = nil
	}
	if err == nil {
		s.taken(m)
	}
	return id, err
}

// previewFailure classifies the error of a call about a preview.
func (s *Sender) previewFailure(ctx context.Context, m *msg.Message, err error) error {
	return s.followMigration(ctx, m, s.flooded(m, s.API.Failure(ctx, err)))
}

// RemovePreview implements adapter.Previewer.
func (s *Sender) RemovePreview(ctx context.Context, in store.Lane, platformID string) error {
	m := &msg.Message{ChatJID: in.ChatJID, ThreadID: in.ThreadID}
	address, err := s.addressOf(m)
	if err != nil {
		return &adapter.Failure{Class: msg.Permanent, Err: err}
	}
	c := call{method: "deleteMessage",
		params: telegramapi.Params{"chat_id": address.params["chat_id"]}}.about(platformID)
	_, err = s.do(ctx, m, c)
	if err == nil || telegramapi.RefusedFor(err, "message to delete not found") {
		return nil
	}
	return s.previewFailure(ctx, m, err)
}

// TakeOver implements adapter.Previewer.
func (s *Sender) TakeOver(part adapter.Part, platformID string) (adapter.Part, bool) {
	c, ok := part.(call)
	if _, id := messageID(platformID); !ok || c.method != "sendMessage" || id == 0 {
		return nil, false
	}
	c.method, c.params = "editMessageText", maps.Clone(c.params)
	for _, key := range []string{"message_thread_id", directTopic, "reply_parameters"} {
		delete(c.params, key)
	}
	return c.about(platformID), true
}
