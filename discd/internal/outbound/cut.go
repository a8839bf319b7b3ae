package outbound

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

// suppressEmbeds is the flag of a message whose links have no previews.
const suppressEmbeds = 1 << 2

// Limits of Discord, from its documentation.
const (
	maxText   = render.LimitDiscord // characters of a message
	maxUpload = msg.MaxUploadDiscord
	maxPoll   = 32 * 24 // hours that a poll may be open
	maxNonce  = 25      // characters
	// maxQuestion is the limit of a poll's question, in characters.
	maxQuestion = 300
)

const (
	// markRoom is left in each text for the mark of a possible duplicate.
	markRoom = len(adapter.DuplicateMark)
	// noticeRoom is left in the text of a file for the notice that is sent in place of a refused file: the file's
	// name has at most 255 bytes.
	noticeRoom = 350
)

// perSecond is how many calls a second Discord takes over all channels.
const perSecond = 50

// NewCeiling keeps all calls below Discord's global limit.
func NewCeiling() *adapter.Ceiling { return adapter.NewCeiling(perSecond, time.Second) }

// Pace keeps to Discord's limits: 50 calls in any second, and five messages in any five seconds into a
// channel, of which three may come at once. The ceiling would hold back calls at that very rate.
func Pace() adapter.Pace {
	return adapter.Pace{
		Account: adapter.Limit{Every: time.Second / (perSecond - 2), Burst: 1},
		Lane: func(l store.Lane) (channel string, limits []adapter.Limit) {
			return cmp.Or(l.ThreadID, l.ChatJID), []adapter.Limit{{Every: 1800 * time.Millisecond, Burst: 3}}
		},
	}
}

// call is a part: one call of the API about the messages of a channel.
type call struct {
	method  string
	channel string
	path    string            // after that of the channel's messages
	body    discordapi.Params // nil for none
	file    *adapter.File
	// emoji is that of a reaction, and respelled means that the call has its other spelling.
	emoji     string
	target    string // the message it is for
	endsPoll  bool   // the target is a poll that is closed
	respelled bool
	entry     entry // its thread's first message comes before it
}

// route is the call's path in the API.
func (c call) route() string {
	if c.endsPoll {
		return "channels/" + c.channel + "/polls/" + c.target + "/expire"
	}
	return "channels/" + c.channel + "/messages" + c.path
}

// sends reports whether the call makes a message.
func (c call) sends() bool { return c.method == http.MethodPost && !c.endsPoll }

// with returns the call with another field of its body.
func (c call) with(key string, value any) call {
	c.body = maps.Clone(c.body)
	c.body[key] = value
	return c
}

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
	channel, err := s.channelOf(m.ChatJID, m.ThreadID)
	if err != nil {
		return nil, err
	}
	calls, err := adapter.Compose(composer{}, m, s.Data)
	if err != nil {
		return nil, err
	}
	for i, c := range calls {
		c.channel = channel
		if c.body["content"] != nil {
			c = c.with("flags", suppressEmbeds)
		}
		if c.body != nil {
			c = c.with("allowed_mentions", map[string]any{"parse": []string{}, "replied_user": false})
		}
		if c.sends() {
			c = c.with("nonce", nonce(m, i)).with("enforce_nonce", true)
		}
		if id := messageID(m.ReplyToID); id != "" && c.sends() && i == 0 {
			c = c.with("message_reference", map[string]any{"message_id": id, "fail_if_not_exists": false})
		}
		parts = append(parts, c)
	}
	return parts, nil
}

// channelOf is the channel of a thread of a chat.
func (s *Sender) channelOf(chatJID, threadID string) (string, error) {
	platform, room := msg.SplitJID(chatJID)
	channel := strings.TrimPrefix(room, "dm-")
	if platform != s.Platform || !discordapi.IsID(channel) {
		return "", fmt.Errorf("%.80q is not a Discord chat", chatJID)
	}
	if threadID != "" && !discordapi.IsID(threadID) {
		return "", fmt.Errorf("%.40q is not a Discord thread", threadID)
	}
	return cmp.Or(threadID, channel), nil
}

// nonce identifies a part to Discord: it is the same after a restart, and different in another
// database.
func nonce(m *msg.Message, part int) string {
	base36 := func(n int64) string { return strconv.FormatInt(n, 36) }
	text := base36(m.ReceivedAt) + "." + base36(m.ID) + "." + base36(int64(part))
	return text[max(0, len(text)-maxNonce):]
}

// messageID returns the message that a platform id names, "" if it names none.
func messageID(platformID string) string {
	if id, _, _ := strings.Cut(platformID, ":"); discordapi.IsID(id) {
		return id
	}
	return ""
}

// composer implements adapter.Composer.
type composer struct{}

func (composer) MessageID(platformID string) string { return messageID(platformID) }

// Texts puts rows of buttons under the last part of a question.
func (composer) Texts(markdown string, shows *msg.Ask) (calls []call) {
	for _, part := range render.Discord(markdown, maxText-markRoom) {
		calls = append(calls, call{method: http.MethodPost, body: discordapi.Params{"content": part}})
	}
	if len(calls) > 0 && shows != nil {
		last := &calls[len(calls)-1]
		*last = last.with(buttonsField, buttonsOf(shows))
	}
	return calls
}

// Files sends each file. The text stands above the first, or follows the files if it is too long for
// one message.
func (c composer) Files(files []adapter.File, markdown string) (calls []call) {
	for _, f := range files {
		if f.Size > maxUpload {
			calls = append(calls, c.Texts(f.TooLarge(maxUpload, "Discord takes from bots"), nil)...)
			continue
		}
		calls = append(calls, call{method: http.MethodPost, body: discordapi.Params{}, file: &f})
	}
	text := render.Discord(markdown, maxText-markRoom-noticeRoom)
	if len(text) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].body["content"] = text[0]
		return calls
	}
	return append(calls, c.Texts(markdown, nil)...)
}

// Reaction takes an emoji, or one of a guild as "name:id".
func (composer) Reaction(target, given string, remove bool) (call, error) {
	if strings.Trim(given, ". ") == "" {
		return call{}, fmt.Errorf("%.40q is not an emoji", given)
	}
	method := http.MethodPut
	if remove {
		method = http.MethodDelete
	}
	return call{method: method, path: reactionPath(target, given), target: target, emoji: given}, nil
}

func reactionPath(target, given string) string {
	return "/" + target + "/reactions/" + url.PathEscape(given) + "/@me"
}

// respell is a reaction with the other spelling of its emoji.
func (c call) respell() call {
	c.path, c.respelled = reactionPath(c.target, emoji.OtherSpelling(c.emoji)), true
	return c
}

// Undo puts a row of one button under a text.
func (composer) Undo(text call, turn int64) call {
	return text.with(buttonsField, oneButton(msg.UndoLabel, msg.UndoData(turn)))
}

func (composer) Edit(target string, text call) call {
	text.method, text.path = http.MethodPatch, "/"+target
	return text.withoutButtons()
}

// withoutButtons empties the rows of buttons: an edit without them leaves those of its message.
func (c call) withoutButtons() call { return c.with(buttonsField, []map[string]any{}) }

// hasButtons reports whether the message gets buttons.
func (c call) hasButtons() bool {
	rows, _ := c.body[buttonsField].([]map[string]any)
	return len(rows) > 0
}

func (composer) Delete(target string) call {
	return call{method: http.MethodDelete, path: "/" + target}
}

// Poll closes a poll itself; Discord shows the result.
func (composer) Poll(target string, m *msg.Message, p *msg.Poll) ([]call, error) {
	if target != "" {
		return []call{{method: http.MethodPost, target: target, endsPoll: true}}, nil
	}
	poll := discordapi.Poll{
		Question: discordapi.PollMedia{Text: p.Question}, Answers: []discordapi.PollAnswer{}, Multiple: p.Multiple,
		Duration: pollHours(m.ReceivedAt, p.ClosesAt),
	}
	for _, text := range p.Options {
		poll.Answers = append(poll.Answers, discordapi.PollAnswer{Media: discordapi.PollMedia{Text: text}})
	}
	return []call{{method: http.MethodPost, body: discordapi.Params{"poll": poll}}}, nil
}

// pollHours is how long a poll made at a time, in unix ms, is open: in whole hours, at most maxPoll.
func pollHours(at, closes int64) int64 {
	if closes == 0 {
		return maxPoll
	}
	hour := time.Hour.Milliseconds()
	return min(max((closes-at+hour-1)/hour, 1), maxPoll)
}

// Components of messages: rows of buttons.
const (
	actionRow    = 1
	button       = 2
	secondary    = 2 // the style of a grey button
	maxInRow     = 5
	buttonsField = "components"
)

// buttonsOf are rows with a button for each option of a question.
func buttonsOf(a *msg.Ask) (rows []map[string]any) {
	var buttons []map[string]any
	for i, option := range a.Options {
		buttons = append(buttons, map[string]any{"type": button, "style": secondary, "label": option,
			"custom_id": msg.ButtonData(a.ID, i+1)})
	}
	for row := range slices.Chunk(buttons, maxInRow) {
		rows = append(rows, map[string]any{"type": actionRow, "components": row})
	}
	return rows
}

// oneButton is the rows of a message with one button.
func oneButton(label, data string) []map[string]any {
	buttons := []map[string]any{{"type": button, "style": secondary, "label": label, "custom_id": data}}
	return []map[string]any{{"type": actionRow, "components": buttons}}
}
