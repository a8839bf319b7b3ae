package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

// What Discord allows, from its documentation.
const (
	textMost     = 2000 // characters of a message
	uploadMost   = 10 << 20
	pollMost     = 32 * 24 // hours that a poll may be open
	typingLasts  = 10 * time.Second
	typingMargin = 2 * time.Second
)

// pace keeps to what Discord allows: 50 calls in any second, and five messages in any five seconds
// into a channel, of which three may come at once.
func pace() adapter.Pace {
	return adapter.Pace{
		Account: adapter.Limit{Every: time.Second / 47, Burst: 1},
		Chat: func(string) []adapter.Limit {
			return []adapter.Limit{{Every: 1800 * time.Millisecond, Burst: 3}}
		},
	}
}

// discord is the platform as the shell sees it.
type discord struct {
	api   *discordapi.Client
	data  string // the data folder
	store *store.Store
	now   func() time.Time
}

// call is a part: one call of the API about messages.
type call struct {
	method  string
	channel string
	path    string            // behind that of the channel's messages
	body    discordapi.Params // nil for none
	file    *upload
}

// upload is a file of a part, read when it is sent.
type upload struct{ name, path string }

// route is the call's path in the API.
func (c call) route() string { return "channels/" + c.channel + "/messages" + c.path }

// makes reports whether the call makes a message; all others may be made twice.
func (c call) makes() bool { return c.method == http.MethodPost }

// with is the call with another field of its body.
func (c call) with(key string, value any) call {
	c.body = maps.Clone(c.body)
	c.body[key] = value
	return c
}

// Cut implements adapter.Platform.
func (d *discord) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	channel, err := channelOf(m.ChatJID, m.ThreadID)
	if err != nil {
		return nil, err
	}
	var calls []call
	switch m.Kind {
	case msg.KindFile:
		calls, err = d.files(m)
	case msg.KindReaction:
		calls, err = reaction(m)
	case msg.KindEdit, msg.KindDelete:
		calls, err = change(m)
	case msg.KindPoll:
		calls, err = poll(m)
	default:
		calls = texts(m.Content)
	}
	if err == nil && len(calls) == 0 {
		err = fmt.Errorf("there is nothing to say")
	}
	for i, c := range calls {
		c.channel = channel
		if c.body != nil {
			c = c.with("allowed_mentions", map[string]any{"parse": []string{}, "replied_user": false})
		}
		if c.makes() {
			c = c.with("nonce", nonce(m, i)).with("enforce_nonce", true)
		}
		if id := messageID(m.ReplyToID); id != "" && c.makes() && i == 0 {
			c = c.with("message_reference", map[string]any{"message_id": id, "fail_if_not_exists": false})
		}
		parts = append(parts, c)
	}
	return parts, err
}

// channelOf is where what is said in a thread of a chat goes.
func channelOf(chatJID, threadID string) (string, error) {
	channel := strings.TrimPrefix(strings.TrimPrefix(chatJID, "discord:"), "dm-")
	if !strings.HasPrefix(chatJID, "discord:") || !discordapi.IsID(channel) {
		return "", fmt.Errorf("%.80q is no chat of Discord's", chatJID)
	}
	if threadID != "" && !discordapi.IsID(threadID) {
		return "", fmt.Errorf("%.40q is no thread", threadID)
	}
	return cmp.Or(threadID, channel), nil
}

// nonce is what Discord knows a part by, the same after a restart, and another in another database:
// at most 25 characters.
func nonce(m *msg.Message, part int) string {
	base36 := func(n int64) string { return strconv.FormatInt(n, 36) }
	text := base36(m.ReceivedAt) + "." + base36(m.ID) + "." + base36(int64(part))
	const most = 25
	return text[max(0, len(text)-most):]
}

// messageID is the message a platform id belongs to, "" if it names none: those of edits and
// reactions begin with it.
func messageID(platformID string) string {
	if id, _, _ := strings.Cut(platformID, ":"); discordapi.IsID(id) {
		return id
	}
	return ""
}

// texts cuts markdown into messages.
func texts(markdown string) (calls []call) {
	for _, part := range render.Discord(markdown, textMost) {
		calls = append(calls, call{method: http.MethodPost, body: discordapi.Params{"content": part}})
	}
	return calls
}

// files sends each attachment; what is said with them stands above the first, or, where it is too
// long for one message, comes behind them.
func (d *discord) files(m *msg.Message) (calls []call, err error) {
	for _, a := range m.Attachments {
		path := filepath.Join(d.data, filepath.FromSlash(a.Path))
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("the file %.80q cannot be read", a.Name)
		}
		if info.Size() > uploadMost {
			calls = append(calls, texts(fmt.Sprintf("The file `%s` is larger than the %d MB that Discord takes from bots.", a.Name, uploadMost>>20))...)
			continue
		}
		calls = append(calls, call{method: http.MethodPost, body: discordapi.Params{}, file: &upload{a.Name, path}})
	}
	said := texts(m.Content)
	if len(said) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].body = said[0].body
		return calls, nil
	}
	return append(calls, said...), nil
}

// reaction gives or takes back an emoji, one of a guild as "name:id".
func reaction(m *msg.Message) ([]call, error) {
	target := messageID(m.TargetID)
	if target == "" {
		return nil, fmt.Errorf("%.40q is no message to react to", m.TargetID)
	}
	emoji, back := strings.CutPrefix(m.Content, "-")
	if strings.Trim(emoji, ". ") == "" {
		return nil, fmt.Errorf("%.40q is no emoji", emoji)
	}
	method := http.MethodPut
	if back {
		method = http.MethodDelete
	}
	return []call{{method: method, path: "/" + target + "/reactions/" + url.PathEscape(emoji) + "/@me"}}, nil
}

// change edits or deletes a message that was sent. What does not fit into an edited message
// follows it.
func change(m *msg.Message) ([]call, error) {
	target := messageID(m.TargetID)
	if target == "" {
		return nil, fmt.Errorf("%.40q is no message to change", m.TargetID)
	}
	if m.Kind == msg.KindDelete {
		return []call{{method: http.MethodDelete, path: "/" + target}}, nil
	}
	calls := texts(m.Content)
	if len(calls) > 0 {
		calls[0].method, calls[0].path = http.MethodPatch, "/"+target
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
	made := discordapi.Poll{
		Question: discordapi.PollMedia{Text: p.Question}, Answers: []discordapi.PollAnswer{}, Multiple: p.Multiple,
		Duration: pollHours(m.ReceivedAt, p.ClosesAt),
	}
	for _, text := range p.Options {
		made.Answers = append(made.Answers, discordapi.PollAnswer{Media: discordapi.PollMedia{Text: text}})
	}
	return []call{{method: http.MethodPost, body: discordapi.Params{"poll": made}}}, nil
}

// pollHours is how long a poll of a time is open: whole hours, and not without end.
func pollHours(at, closes int64) int64 {
	if closes == 0 {
		return pollMost
	}
	hour := time.Hour.Milliseconds()
	return min(max((closes-at+hour-1)/hour, 1), pollMost)
}
