package outbound

import (
	"context"
	"maps"
	"net/http"
	"time"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

// editEvery is how often the message of a preview is changed: a channel takes five edits in five seconds.
const editEvery = 2 * time.Second

// PreviewEvery implements adapter.Previewer.
func (s *Sender) PreviewEvery(store.Lane) time.Duration { return editEvery }

// ShowPreview implements adapter.Previewer. A thread that is archived, or not created yet, gets no preview.
func (s *Sender) ShowPreview(ctx context.Context, p *adapter.Preview) (platformID string, err error) {
	channel, err := s.channelOf(p.In.ChatJID, p.In.ThreadID)
	if err != nil {
		return "", &adapter.Failure{Class: msg.Permanent, Err: err}
	}
	c := call{method: http.MethodPost, channel: channel, body: discordapi.Params{
		"content": previewText(p), "flags": suppressEmbeds,
		"allowed_mentions": map[string]any{"parse": []string{}, "replied_user": false},
	}}
	switch id := messageID(p.ReplyTo); {
	case p.PlatformID != "":
		c.method, c.path = http.MethodPatch, "/"+p.PlatformID
		c.body[buttonsField] = oneButton(msg.StopLabel, msg.StopData(p.Turn))
	case id != "":
		c.body[referenceField] = map[string]any{"message_id": id, "fail_if_not_exists": false}
	}
	var made discordapi.Message
	err = s.API.Call(ctx, c.method, c.route(), c.body, &made)
	if other, _ := c.otherForm(err); err != nil && other != nil {
		err = s.API.Call(ctx, other.method, other.route(), other.body, &made)
	}
	if err != nil {
		return "", discordapi.Failure(err)
	}
	return made.ID, nil
}

// previewText is the text of a preview.
func previewText(p *adapter.Preview) string {
	line := render.DiscordTail(p.LineMarkdown(), maxText/2)
	text := render.DiscordTail(p.Text, maxText-utf8.RuneCountInString(line)-2)
	if text == "" || line == "" {
		return text + line
	}
	return text + "\n\n" + line
}

// RemovePreview implements adapter.Previewer.
func (s *Sender) RemovePreview(ctx context.Context, in store.Lane, platformID string) error {
	channel, err := s.channelOf(in.ChatJID, in.ThreadID)
	if err != nil {
		return &adapter.Failure{Class: msg.Permanent, Err: err}
	}
	c := call{method: http.MethodDelete, channel: channel, path: "/" + platformID}
	err = s.API.Call(ctx, c.method, c.route(), nil, nil)
	if err == nil || discordapi.RefusedFor(err, unknownMessage) || discordapi.RefusedFor(err, unknownChannel) {
		return nil
	}
	return discordapi.Failure(err)
}

// TakeOver implements adapter.Previewer.
func (s *Sender) TakeOver(part adapter.Part, platformID string) (adapter.Part, bool) {
	c, ok := part.(call)
	if !ok || !c.sends() || c.file != nil || c.body["content"] == nil || !discordapi.IsID(platformID) {
		return nil, false
	}
	if c.body[buttonsField] == nil {
		c = c.withoutButtons()
	}
	c.body = maps.Clone(c.body)
	c.method, c.path = http.MethodPatch, "/"+platformID
	for _, field := range []string{"nonce", "enforce_nonce", referenceField} {
		delete(c.body, field)
	}
	return c, true
}
