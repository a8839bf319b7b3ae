package outbound

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

const (
	// draftEvery is how often a draft is changed, and draftExpires when Telegram removes it.
	draftEvery   = time.Second
	draftExpires = 30 * time.Second
	// editEvery is how often the message of a preview is changed: a group takes 20 messages and edits a minute.
	editEvery = 3 * time.Second
	// maxDraftID bounds the ids of drafts, which have 32 bits in some libraries.
	maxDraftID = 1<<31 - 1
	// doing begins the line about what the agent does.
	doing = "⏳ "
)

// PreviewPace implements adapter.Previewer. Private chats have drafts, which only the user sees, and which vanish; all
// others, and those of an old server, a message that is changed.
func (s *Sender) PreviewPace(in store.Lane) adapter.PreviewPace {
	if s.drafts(in) {
		return adapter.PreviewPace{Every: draftEvery, Expires: draftExpires}
	}
	return adapter.PreviewPace{Every: editEvery}
}

func (s *Sender) drafts(in store.Lane) bool {
	_, direct := telegramapi.CutTopic(in.ChatJID)
	return msg.KindOfJID(in.ChatJID) == msg.ChatDM && !direct && !s.noDrafts.Load()
}

// ShowPreview implements adapter.Previewer. A draft can have no button: sendMessageDraft takes no reply_markup.
func (s *Sender) ShowPreview(ctx context.Context, p *adapter.Preview) (platformID string, err error) {
	m := &msg.Message{ChatJID: p.In.ChatJID, ThreadID: p.In.ThreadID, ReplyToID: p.ReplyTo}
	address, err := s.addressOf(m)
	if err != nil {
		return "", &adapter.Failure{Class: msg.Permanent, Err: err}
	}
	c := previewCall(p)
	switch {
	case p.PlatformID != "":
		c.method = "editMessageText"
		c = c.about(p.PlatformID)
		c.params[keyboard] = telegramapi.Keyboard{Rows: [][]telegramapi.Button{{{Text: msg.StopLabel,
			Data: msg.StopData(p.Turn)}}}}
	case s.drafts(p.In):
		c.method, c.params["draft_id"] = "sendMessageDraft", p.Turn%maxDraftID+1
		delete(address.params, "reply_parameters")
		delete(c.params, "link_preview_options")
	}
	for key, value := range address.params {
		if key == "chat_id" || c.sends() {
			c.params[key] = value
		}
	}
	c.of.reply, c.of.topic = address.of.reply, address.of.topic
	id, err := s.doPreview(ctx, m, c)
	if err != nil {
		return "", s.previewFailure(ctx, m, c, err)
	}
	if p.PlatformID != "" {
		return p.PlatformID, nil
	}
	return id, nil
}

// previewCall is the call that sends the text of a preview. A draft without a text shows that the bot is thinking.
func previewCall(p *adapter.Preview) call {
	var line render.Formatted
	if p.Line != "" {
		line = render.TelegramTail(doing+p.LineMarkdown(), maxText/2)
	}
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
	try := func(c call) {
		if c.method == "sendMessageDraft" {
			if c, _, err = s.own(ctx, m, c); err == nil {
				err = s.API.Call(ctx, c.method, c.params, nil)
			}
		} else {
			id, err = s.do(ctx, m, c)
		}
	}
	try(c)
	if c.params[keyboard] != nil && keyboardRefused(err) {
		c = *c.without(keyboard)
		try(c)
	}
	if c.formatted() && telegramapi.RefusedFor(err, "entit") {
		try(*c.plain())
	}
	if telegramapi.RefusedFor(err, notModified) { // it has this text already
		err = nil
	}
	if err == nil {
		s.taken(m)
	}
	return id, err
}

// previewFailure classifies the error of a call about a preview. A server without drafts gets messages from now on.
func (s *Sender) previewFailure(ctx context.Context, m *msg.Message, c call, err error) error {
	var refused *telegramapi.Error
	if c.method == "sendMessageDraft" && errors.As(err, &refused) &&
		(refused.Code == http.StatusNotFound && !refused.Foreign ||
			telegramapi.RefusedFor(err, "textdraft_peer_invalid")) {
		s.noDrafts.Store(true)
		return &adapter.Failure{Class: msg.Transient, Err: err}
	}
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
	return s.previewFailure(ctx, m, c, err)
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
