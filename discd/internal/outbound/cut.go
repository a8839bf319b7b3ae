package outbound

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// Limits of Discord, from its documentation.
const (
	maxText   = 2000 // characters of a message
	maxUpload = msg.MaxUploadDiscord
	maxPoll   = 32 * 24 // hours that a poll may be open
	maxNonce  = 25      // characters
)

// Pace keeps to Discord's limits: 50 calls in any second, and five messages in any five seconds into a
// channel, of which three may come at once.
func Pace() adapter.Pace {
	return adapter.Pace{
		Account: adapter.Limit{Every: time.Second / 47, Burst: 1},
		Chat: func(string) []adapter.Limit {
			return []adapter.Limit{{Every: 1800 * time.Millisecond, Burst: 3}}
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
	remark    string // in what other form it is sent than intended, "" for none
}

// route is the call's path in the API.
func (c call) route() string {
	if c.endsPoll {
		return "channels/" + c.channel + "/polls/" + c.target + "/expire"
	}
	return "channels/" + c.channel + "/messages" + c.path
}

// sends reports whether the call makes a message. All other calls may be repeated.
func (c call) sends() bool { return c.method == http.MethodPost && !c.endsPoll }

// with returns the call with another field of its body.
func (c call) with(key string, value any) call {
	c.body = maps.Clone(c.body)
	c.body[key] = value
	return c
}

// UploadSize implements adapter.Upload.
func (c call) UploadSize() int64 {
	if c.file == nil {
		return 0
	}
	return c.file.Size
}

// Cut implements adapter.Platform.
func (s *Sender) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	channel, err := channelOf(m.ChatJID, m.ThreadID)
	if err != nil {
		return nil, err
	}
	calls, err := adapter.Compose(composer{}, m, s.Data)
	if err != nil {
		return nil, err
	}
	for i, c := range calls {
		c.channel = channel
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
func channelOf(chatJID, threadID string) (string, error) {
	channel := strings.TrimPrefix(strings.TrimPrefix(chatJID, "discord:"), "dm-")
	if !strings.HasPrefix(chatJID, "discord:") || !discordapi.IsID(channel) {
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

func (composer) Texts(markdown string) (calls []call) {
	for _, part := range render.Discord(markdown, maxText) {
		calls = append(calls, call{method: http.MethodPost, body: discordapi.Params{"content": part}})
	}
	return calls
}

// Files sends each file. The text stands above the first, or follows the files if it is too long for
// one message.
func (c composer) Files(files []adapter.File, markdown string) (calls []call) {
	for _, f := range files {
		if f.Size > maxUpload {
			calls = append(calls, c.Texts(f.TooLarge(maxUpload, "Discord takes from bots"))...)
			continue
		}
		calls = append(calls, call{method: http.MethodPost, body: discordapi.Params{}, file: &f})
	}
	texts := c.Texts(markdown)
	if len(texts) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].body = texts[0].body
		return calls
	}
	return append(calls, texts...)
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

func (composer) Edit(target string, text call) call {
	text.method, text.path = http.MethodPatch, "/"+target
	return text
}

func (composer) Delete(target string) call {
	return call{method: http.MethodDelete, path: "/" + target}
}

func (composer) Poll(m *msg.Message, p *msg.Poll) ([]call, error) {
	poll := discordapi.Poll{
		Question: discordapi.PollMedia{Text: p.Question}, Answers: []discordapi.PollAnswer{}, Multiple: p.Multiple,
		Duration: pollHours(m.ReceivedAt, p.ClosesAt),
	}
	for _, text := range p.Options {
		poll.Answers = append(poll.Answers, discordapi.PollAnswer{Media: discordapi.PollMedia{Text: text}})
	}
	return []call{{method: http.MethodPost, body: discordapi.Params{"poll": poll}}}, nil
}

// ClosePoll closes the poll itself; Discord shows the result.
func (composer) ClosePoll(target string, _ *msg.Poll) []call {
	return []call{{method: http.MethodPost, target: target, endsPoll: true}}
}

// pollHours is how long a poll made at a time, in unix ms, is open: in whole hours, at most maxPoll.
func pollHours(at, closes int64) int64 {
	if closes == 0 {
		return maxPoll
	}
	hour := time.Hour.Milliseconds()
	return min(max((closes-at+hour-1)/hour, 1), maxPoll)
}
