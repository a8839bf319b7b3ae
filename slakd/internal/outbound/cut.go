package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

// What Slack allows, from its documentation.
const (
	textMost   = 4000 // characters of a message, and of an edited one
	uploadMost = 1 << 30
)

// The methods that parts are sent by.
const (
	postMessage    = "chat.postMessage"
	updateMessage  = "chat.update"
	deleteMessage  = "chat.delete"
	addReaction    = "reactions.add"
	removeReaction = "reactions.remove"
	uploadFile     = "files.completeUploadExternal"
)

// pace is Slack's: a message a second into each channel, of which a few may come at once.
func pace() adapter.Pace {
	return adapter.Pace{Chat: func(string) []adapter.Limit { return []adapter.Limit{{Every: time.Second, Burst: 3}} }}
}

// slack is the platform as the shell sees it.
type slack struct {
	api   *slackapi.Client
	store *store.Store
	data  string // the data folder
}

// call is a part: one call of the API.
type call struct {
	method  string
	channel string
	thread  string // ts of the message that began it
	text    string // mrkdwn
	ts      string // of the message that is acted upon; "" is the row's own first part
	emoji   string // its name
	file    *upload
	tag     slackapi.Tag
}

// upload is a file of a part, read when it is sent.
type upload struct{ name, path string }

// Cut implements adapter.Platform.
func (s *slack) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	platform, channel := msg.SplitJID(m.ChatJID)
	if platform != "slack" || channel == "" {
		return nil, fmt.Errorf("%.80q is no chat of Slack's", m.ChatJID)
	}
	thread := slackapi.MessageTS(m.ThreadID)
	if thread == "" && m.ThreadID != "" {
		return nil, fmt.Errorf("%.40q is no thread of Slack's", m.ThreadID)
	}
	var calls []call
	switch m.Kind {
	case msg.KindFile:
		calls, err = s.files(m)
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
		switch c.method {
		case postMessage:
			c.thread, c.tag = thread, slackapi.Tag{Row: m.ID, Part: i, Salt: m.ReceivedAt}
		case uploadFile:
			c.thread = thread
		}
		parts = append(parts, c)
	}
	return parts, err
}

// texts cuts markdown into messages.
func texts(markdown string) (calls []call) {
	for _, text := range render.Slack(markdown, textMost) {
		calls = append(calls, call{method: postMessage, text: text})
	}
	return calls
}

// files sends each attachment; what is said with them stands above the first, or, where it is too
// long for that, comes behind them.
func (s *slack) files(m *msg.Message) (calls []call, err error) {
	caption := render.Slack(m.Content, textMost)
	for _, a := range m.Attachments {
		path := filepath.Join(s.data, filepath.FromSlash(a.Path))
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the file %.80q cannot be read", a.Name)
		case info.Size() > uploadMost:
			calls = append(calls, texts(fmt.Sprintf("The file `%s` is larger than the %d MB that Slack takes.", a.Name, uploadMost>>20))...)
		case info.Size() == 0:
			calls = append(calls, texts(fmt.Sprintf("The file `%s` is empty, and Slack takes no empty ones.", a.Name))...)
		default:
			calls = append(calls, call{method: uploadFile, file: &upload{a.Name, path}})
		}
	}
	if len(caption) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].text = caption[0]
		return calls, nil
	}
	return append(calls, texts(m.Content)...), nil
}

func reaction(m *msg.Message) ([]call, error) {
	target := slackapi.MessageTS(m.TargetID)
	if target == "" {
		return nil, fmt.Errorf("%.40q is no message to react to", m.TargetID)
	}
	method, sign := addReaction, m.Content
	if back, ok := strings.CutPrefix(sign, "-"); ok {
		method, sign = removeReaction, back
	}
	known := slackapi.EmojiName(sign)
	if known == "" {
		return nil, fmt.Errorf("nobody knows what Slack calls %.40q: give its name between colons", sign)
	}
	return []call{{method: method, ts: target, emoji: known}}, nil
}

// change edits or deletes a message that was sent. What does not fit into an edited message
// follows it.
func change(m *msg.Message) ([]call, error) {
	target := slackapi.MessageTS(m.TargetID)
	if target == "" {
		return nil, fmt.Errorf("%.40q is no message to change", m.TargetID)
	}
	if m.Kind == msg.KindDelete {
		return []call{{method: deleteMessage, ts: target}}, nil
	}
	calls := texts(m.Content)
	if len(calls) > 0 {
		calls[0].method, calls[0].ts = updateMessage, target
	}
	return calls, nil
}

// pollContent is what a poll's row says. Slack has no polls: people answer with reactions, of
// which the bot gives the first of each kind, so that the others need but a click.
type pollContent struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

// votes are the names of the reactions that stand for a poll's options.
func votes() []string {
	return []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "keycap_ten"}
}

func poll(m *msg.Message) ([]call, error) {
	var p pollContent
	if err := json.Unmarshal([]byte(m.Content), &p); err != nil {
		return nil, fmt.Errorf("the row is no poll: %w", err)
	}
	votes := votes()
	if len(p.Options) > len(votes) {
		return nil, fmt.Errorf("a poll has at most %d options", len(votes))
	}
	text := p.Question
	for i, option := range p.Options {
		text += "\n" + slackapi.EmojiFromName(votes[i]) + " " + option
	}
	calls := texts(text)
	for i := range p.Options {
		calls = append(calls, call{method: addReaction, emoji: votes[i]})
	}
	return calls, nil
}
