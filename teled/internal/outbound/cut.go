package outbound

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"arizuko/pkg/adapter"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// Limits of the Bot API, from its documentation.
const (
	maxText    = render.LimitTelegram // UTF-16 units of a message
	maxCaption = 1024                 // and of a file's caption
	maxPoll    = 300                  // and of a poll's question
	maxPhoto   = 10 << 20
)

// markRoom is left in each text for the mark of a possible duplicate.
const markRoom = len(adapter.DuplicateMark)

// general is the id of a forum's General topic, which messages must not name.
const general = 1

// perSecond is how many messages a second the API takes over all chats.
const perSecond = 30

// NewCeiling keeps all calls below the API's limit, messages or not.
func NewCeiling() *adapter.Ceiling { return adapter.NewCeiling(perSecond, time.Second) }

// Pace keeps to the API's limits: 30 messages a second over all chats, one a second into each, of
// which a few may come at once, and 20 a minute into a group. A burst counts too, so that no second
// has more than 30 messages and no minute more than 20.
func Pace() adapter.Pace {
	return adapter.Pace{
		Account: adapter.Limit{Every: time.Second / (perSecond - 1), Burst: 1},
		Lane: func(l store.Lane) (chat string, limits []adapter.Limit) {
			limits = []adapter.Limit{{Every: time.Second, Burst: 3}}
			chat, _ = telegramapi.CutTopic(l.ChatJID)
			if msg.KindOfJID(chat) != msg.ChatDM {
				limits = append(limits, adapter.Limit{Every: 4 * time.Second, Burst: 5})
			}
			return chat, limits
		},
	}
}

// directTopic is the parameter of the topic to which a direct message of a channel goes.
const directTopic = "direct_messages_topic_id"

// call is a part: one call of the API.
type call struct {
	method string
	params telegramapi.Params
	file   *adapter.File
	field  string // of the file
	text   string // the parameter that holds the text, "" for none
	closes int64  // when a poll closes, unix ms, 0 for never
	remark string // on another form in which it is sent than the row asks for, "" for none
	of     marks
}

// marks say of the ids in the parameters of a call whose they are, see msg.BotMark: of the message that it is about,
// the one that it answers, and the topic.
type marks struct{ message, reply, topic string }

// sends reports whether the call makes a message.
func (c call) sends() bool { return strings.HasPrefix(c.method, "send") }

// Repeatable implements adapter.Repeatable.
func (c call) Repeatable() bool { return !c.sends() }

// UploadSize implements adapter.Upload.
func (c call) UploadSize() int64 {
	if c.file == nil {
		return 0
	}
	return c.file.Size
}

// Cut implements adapter.Platform.
func (s *Sender) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	address, err := s.addressOf(m)
	if err != nil {
		return nil, err
	}
	calls, err := adapter.Compose(composer{maxUpload: msg.MaxUploadTelegram(s.Local)}, m, s.Data)
	if err != nil {
		return nil, err
	}
	for i, c := range calls {
		for key, value := range address.params {
			if _, set := c.params[key]; !set && c.takes(key, i) {
				c.params[key] = value
			}
		}
		c.of.reply, c.of.topic = address.of.reply, address.of.topic
		parts = append(parts, c)
	}
	return parts, nil
}

// addressOf is a call with the destination of a row: its chat, its thread and the message it replies to.
func (s *Sender) addressOf(m *msg.Message) (c call, err error) {
	chat, direct, err := telegramapi.ChatID(s.Platform, m.ChatJID)
	if err != nil {
		return c, err
	}
	p := telegramapi.Params{"chat_id": chat}
	c.params = p
	switch {
	case direct != 0: // the thread says the same
		p[directTopic] = direct
	case m.ThreadID != "":
		mark, topic := msg.CutBotMark(m.ThreadID)
		if p["message_thread_id"], err = strconv.ParseInt(topic, 10, 64); err != nil {
			return c, fmt.Errorf("%.40q is not a forum topic", m.ThreadID)
		}
		if p["message_thread_id"] == int64(general) {
			delete(p, "message_thread_id")
		}
		c.of.topic = mark
	}
	if mark, id := messageID(m.ReplyToID); id != 0 {
		p["reply_parameters"] = map[string]any{"message_id": id, "allow_sending_without_reply": true}
		c.of.reply = mark
	}
	return c, nil
}

// takes reports whether the method takes a key of an address. Only the first part is a reply.
func (c call) takes(key string, part int) bool {
	switch key {
	case "message_thread_id", directTopic:
		return c.sends()
	case "reply_parameters":
		return c.sends() && part == 0
	}
	return true
}

// messageID returns the message that a platform id names, 0 if it names none, and the mark of its bot.
func messageID(platformID string) (mark string, id int64) {
	mark, rest := msg.CutBotMark(platformID)
	rest, _, _ = strings.Cut(rest, ":")
	id, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return "", 0
	}
	return mark, id
}

// about makes a call one about a message.
func (c call) about(platformID string) call {
	c.of.message, c.params["message_id"] = messageID(platformID)
	return c
}

// composer implements adapter.Composer.
type composer struct {
	maxUpload int64 // bytes of a file that the server takes
}

func (composer) MessageID(platformID string) string {
	if mark, id := messageID(platformID); id != 0 {
		return mark + strconv.FormatInt(id, 10)
	}
	return ""
}

// Texts puts an inline keyboard under the last part of a question.
func (composer) Texts(markdown string, shows *msg.Ask) (calls []call) {
	for _, part := range render.Telegram(markdown, maxText-markRoom) {
		calls = append(calls, call{
			method: "sendMessage", text: "text", params: telegramapi.Params{
				"text": part.Text, "entities": part.Entities,
				"link_preview_options": map[string]bool{"is_disabled": true},
			},
		})
	}
	if len(calls) > 0 && shows != nil {
		calls[len(calls)-1].params[keyboard] = keyboardOf(shows)
	}
	return calls
}

// maxShort is the length in characters of options that stand beside each other, at most maxRow of them: longer ones
// would be cut off.
const (
	maxShort = 12
	maxRow   = 3
)

// keyboard is the parameter of the buttons under a message.
const keyboard = "reply_markup"

// keyboardOf has a button for each option of a question.
func keyboardOf(a *msg.Ask) telegramapi.Keyboard {
	inRow := maxRow
	var buttons []telegramapi.Button
	for i, option := range a.Options {
		buttons = append(buttons, telegramapi.Button{Text: option, Data: msg.ButtonData(a.ID, i+1)})
		if utf8.RuneCountInString(option) > maxShort {
			inRow = 1
		}
	}
	return telegramapi.Keyboard{Rows: slices.Collect(slices.Chunk(buttons, inRow))}
}

// Files sends each file. The text is the caption of the first, or follows the files if it is too
// long for a caption.
func (c composer) Files(files []adapter.File, markdown string) (calls []call) {
	for _, f := range files {
		if f.Size > c.maxUpload {
			calls = append(calls, c.Texts(f.TooLarge(c.maxUpload, "Telegram takes from bots"), nil)...)
			continue
		}
		method, field := methodFor(f)
		calls = append(calls, call{method: method, params: telegramapi.Params{}, file: &f, field: field})
	}
	caption := render.Telegram(markdown, maxCaption-markRoom)
	if len(caption) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].params["caption"], calls[0].params["caption_entities"] = caption[0].Text, caption[0].Entities
		calls[0].text = "caption"
		return calls
	}
	return append(calls, c.Texts(markdown, nil)...)
}

// methodFor is the method that sends a file, and the method's field for it.
func methodFor(f adapter.File) (method, field string) {
	kind, format, _ := strings.Cut(f.MIME, "/")
	switch {
	case kind == "image" && format != "gif" && format != "svg+xml" && f.Size <= maxPhoto:
		return "sendPhoto", "photo"
	case kind == "video":
		return "sendVideo", "video"
	case f.MIME == "audio/ogg":
		return "sendVoice", "voice"
	case kind == "audio":
		return "sendAudio", "audio"
	}
	return "sendDocument", "document"
}

// Reaction sends a similar one in place of one that Telegram does not accept.
func (composer) Reaction(target, given string, remove bool) (c call, err error) {
	list := []map[string]string{}
	accepted, same := emoji.Telegram(given)
	if accepted == "" {
		return c, fmt.Errorf("Telegram does not accept the reaction %.40q", given)
	}
	if !remove {
		list = append(list, map[string]string{"type": "emoji", "emoji": accepted})
	}
	text, err := json.Marshal(list) // as text, since an empty list removes the reaction
	c = call{method: "setMessageReaction", params: telegramapi.Params{"reaction": string(text)}}.about(target)
	if !same && !remove {
		c.remark = fmt.Sprintf("sent as %s: Telegram does not accept %.40s", accepted, given)
	}
	return c, err
}

// Undo puts an inline keyboard of one button under a text.
func (composer) Undo(text call, turn int64) call {
	text.params[keyboard] = oneButton(msg.UndoLabel, msg.UndoData(turn))
	return text
}

// oneButton is a keyboard of one button.
func oneButton(label, data string) telegramapi.Keyboard {
	return telegramapi.Keyboard{Rows: [][]telegramapi.Button{{{Text: label, Data: data}}}}
}

// Edit needs nothing more to take buttons away: an edit without a keyboard removes the one of its message.
func (composer) Edit(target string, text call) call {
	text.method = "editMessageText"
	return text.about(target)
}

func (composer) Delete(target string) call {
	return call{method: "deleteMessage", params: telegramapi.Params{}}.about(target)
}

// Poll closes a poll itself; Telegram shows the result.
func (composer) Poll(target string, _ *msg.Message, p *msg.Poll) ([]call, error) {
	if target != "" {
		return []call{call{method: "stopPoll", params: telegramapi.Params{}}.about(target)}, nil
	}
	options := make([]map[string]string, len(p.Options))
	for i, text := range p.Options {
		options[i] = map[string]string{"text": text}
	}
	return []call{{method: "sendPoll", text: "question", closes: p.ClosesAt, params: telegramapi.Params{
		"question": p.Question, "options": options, "allows_multiple_answers": p.Multiple, "is_anonymous": "false",
	}}}, nil
}
