package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/teled/internal/telegramapi"
)

// What the Bot API allows, from its documentation.
const (
	textMost    = 4096 // UTF-16 units of a message
	captionMost = 1024 // and of a file's caption
	uploadMost  = 50 << 20
	photoMost   = 10 << 20
	typingLasts = 5 * time.Second
)

// pace keeps to what the API allows: 30 messages a second over all chats, one a second into each,
// of which a few may come at once, and 20 a minute into a group. What comes at once counts too, so
// that no second has more than 30 and no minute more than 20.
func pace() adapter.Pace {
	return adapter.Pace{
		Account: adapter.Limit{Every: time.Second / 29, Burst: 1},
		Chat: func(chatJID string) []adapter.Limit {
			limits := []adapter.Limit{{Every: time.Second, Burst: 3}}
			if msg.KindOfJID(chatJID) != msg.ChatDM {
				limits = append(limits, adapter.Limit{Every: 4 * time.Second, Burst: 5})
			}
			return limits
		},
	}
}

// telegram is the platform as the shell sees it.
type telegram struct {
	api  *telegramapi.Client
	data string // the data folder
	// move gives a chat another address.
	move func(ctx context.Context, from, to string) error
}

// call is a part: one call of the API.
type call struct {
	method string
	params telegramapi.Params
	file   *upload
	plain  string // the text without entities, to fall back to
}

// upload is a file of a part, read when it is sent.
type upload struct{ field, name, path string }

// Cut implements adapter.Platform.
func (t *telegram) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	address, err := t.address(m)
	if err != nil {
		return nil, err
	}
	var calls []call
	switch m.Kind {
	case msg.KindFile:
		calls, err = t.files(m)
	case msg.KindReaction:
		calls, err = reaction(m)
	case msg.KindEdit, msg.KindDelete:
		calls, err = change(m)
	case msg.KindPoll:
		calls, err = poll(m)
	default:
		calls = texts("sendMessage", "text", m.Content)
	}
	if err == nil && len(calls) == 0 {
		err = fmt.Errorf("there is nothing to say")
	}
	for i, c := range calls {
		for key, value := range address {
			if _, taken := c.params[key]; !taken && addresses(c.method, key, i) {
				c.params[key] = value
			}
		}
		parts = append(parts, c)
	}
	return parts, err
}

// address is where a row goes: chat, thread and the message it replies to.
func (t *telegram) address(m *msg.Message) (telegramapi.Params, error) {
	chat, err := telegramapi.ChatID(m.ChatJID)
	if err != nil {
		return nil, err
	}
	p := telegramapi.Params{"chat_id": chat}
	if m.ThreadID != "" {
		if p["message_thread_id"], err = strconv.ParseInt(m.ThreadID, 10, 64); err != nil {
			return nil, fmt.Errorf("%.40q is no topic of a forum", m.ThreadID)
		}
	}
	if id := messageID(m.ReplyToID); id != 0 {
		p["reply_parameters"] = map[string]any{"message_id": id, "allow_sending_without_reply": true}
	}
	return p, nil
}

// addresses says whether a method takes part of an address. Only the first part is a reply.
func addresses(method, key string, part int) bool {
	switch key {
	case "message_thread_id":
		return strings.HasPrefix(method, "send")
	case "reply_parameters":
		return strings.HasPrefix(method, "send") && part == 0
	}
	return true
}

// messageID is the message a platform id belongs to, 0 if it names none: those of edits and
// reactions begin with it.
func messageID(platformID string) int64 {
	id, _, _ := strings.Cut(platformID, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// texts cuts markdown into calls of a method that take it in a field.
func texts(method, field, markdown string) (calls []call) {
	entities := "entities"
	if field == "caption" {
		entities = "caption_entities"
	}
	for _, part := range render.Telegram(markdown, textMost) {
		calls = append(calls, call{
			method: method, plain: field,
			params: telegramapi.Params{field: part.Text, entities: part.Entities},
		})
	}
	return calls
}

// files sends each attachment; what is said with them is the caption of the first, or, where it
// is too long for one, comes behind them.
func (t *telegram) files(m *msg.Message) (calls []call, err error) {
	caption := render.Telegram(m.Content, captionMost)
	for _, a := range m.Attachments {
		path := filepath.Join(t.data, filepath.FromSlash(a.Path))
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("the file %.80q cannot be read", a.Name)
		}
		method, field, most := methodFor(a.MIME, info.Size())
		if info.Size() > most {
			calls = append(calls, texts("sendMessage", "text", fmt.Sprintf("The file `%s` is larger than the %d MB that Telegram takes from bots.", a.Name, most>>20))...)
			continue
		}
		calls = append(calls, call{method: method, params: telegramapi.Params{}, file: &upload{field, a.Name, path}})
	}
	if len(caption) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].params["caption"], calls[0].params["caption_entities"] = caption[0].Text, caption[0].Entities
		calls[0].plain = "caption"
		return calls, nil
	}
	return append(calls, texts("sendMessage", "text", m.Content)...), nil
}

// methodFor is how a file of a kind is sent, and how large it may be.
func methodFor(mime string, size int64) (method, field string, most int64) {
	kind, format, _ := strings.Cut(mime, "/")
	switch {
	case kind == "image" && format != "gif" && format != "svg+xml" && size <= photoMost:
		return "sendPhoto", "photo", uploadMost
	case kind == "video":
		return "sendVideo", "video", uploadMost
	case mime == "audio/ogg":
		return "sendVoice", "voice", uploadMost
	case kind == "audio":
		return "sendAudio", "audio", uploadMost
	}
	return "sendDocument", "document", uploadMost
}

func reaction(m *msg.Message) ([]call, error) {
	target := messageID(m.TargetID)
	if target == 0 {
		return nil, fmt.Errorf("%.40q is no message to react to", m.TargetID)
	}
	list := []map[string]string{}
	if emoji := strings.TrimPrefix(m.Content, "-"); emoji == m.Content {
		list = append(list, map[string]string{"type": "emoji", "emoji": emoji})
	}
	text, err := json.Marshal(list) // as text, since an empty list takes the reaction back
	return []call{{method: "setMessageReaction", params: telegramapi.Params{"message_id": target, "reaction": string(text)}}}, err
}

// change edits or deletes a message that was sent. What does not fit into an edited message
// follows it.
func change(m *msg.Message) ([]call, error) {
	target := messageID(m.TargetID)
	if target == 0 {
		return nil, fmt.Errorf("%.40q is no message to change", m.TargetID)
	}
	if m.Kind == msg.KindDelete {
		return []call{{method: "deleteMessage", params: telegramapi.Params{"message_id": target}}}, nil
	}
	calls := texts("sendMessage", "text", m.Content)
	if len(calls) > 0 {
		calls[0].method, calls[0].params["message_id"] = "editMessageText", target
	}
	return calls, nil
}

// pollContent is what a poll's row says.
type pollContent struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Multiple bool     `json:"multiple"`
	ClosesAt int64    `json:"closes_at"` // unix ms, 0 for never
}

func poll(m *msg.Message) ([]call, error) {
	var p pollContent
	if err := json.Unmarshal([]byte(m.Content), &p); err != nil {
		return nil, fmt.Errorf("the row is no poll: %w", err)
	}
	options := make([]map[string]string, len(p.Options))
	for i, text := range p.Options {
		options[i] = map[string]string{"text": text}
	}
	return []call{{method: "sendPoll", params: telegramapi.Params{
		"question": p.Question, "options": options, "allows_multiple_answers": p.Multiple, "is_anonymous": "false",
	}}}, nil
}
