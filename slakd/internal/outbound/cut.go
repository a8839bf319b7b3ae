package outbound

import (
	"fmt"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

// Limits of Slack, from its documentation.
const (
	maxText   = render.LimitSlack // characters of a message, and of an edited one
	maxUpload = msg.MaxUploadSlack
)

const (
	// markRoom is left in each text for the mark of a possible duplicate.
	markRoom = len(adapter.DuplicateMark)
	// noticeRoom is left in the text of a file for the notice that is sent in place of a refused file: the file's
	// name has at most 255 bytes.
	noticeRoom = 350
)

// The methods that send parts.
const (
	postMessage    = "chat.postMessage"
	updateMessage  = "chat.update"
	deleteMessage  = "chat.delete"
	addReaction    = "reactions.add"
	removeReaction = "reactions.remove"
	uploadFile     = "files.completeUploadExternal"
)

// Pace keeps to Slack's limit: a message a second into each channel, of which a few may come at once.
func Pace() adapter.Pace {
	return adapter.Pace{Lane: func(l store.Lane) (channel string, limits []adapter.Limit) {
		return l.ChatJID, []adapter.Limit{{Every: time.Second, Burst: 3}}
	}}
}

// call is a part: one call of the API.
type call struct {
	method  string
	channel string
	thread  string // ts of its first message
	text    string // mrkdwn
	ts      string // of the message that is changed
	emoji   string // its name
	file    *adapter.File
	tag     slackapi.Tag
	// takesOver makes the message of a preview, ts, into this one.
	takesOver bool
	buttons   []slackapi.Button // below the text
	undo      int64             // the turn that a button takes back, 0 for none
}

// sends reports whether the call makes a message.
func (c call) sends() bool { return c.method == postMessage || c.method == uploadFile }

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
	platform, channel := msg.SplitJID(m.ChatJID)
	if platform != s.Platform || channel == "" {
		return nil, fmt.Errorf("%.80q is not a Slack chat", m.ChatJID)
	}
	thread := slackapi.MessageTS(m.ThreadID)
	if thread == "" && m.ThreadID != "" {
		return nil, fmt.Errorf("%.40q is not a Slack thread", m.ThreadID)
	}
	calls, err := adapter.Compose(composer{}, m, s.Data)
	if err != nil {
		return nil, err
	}
	for i, c := range calls {
		c.channel = channel
		if c.sends() {
			c.thread = thread
			c.tag = slackapi.Tag{Row: m.ID, Part: i, Salt: m.ReceivedAt}
		}
		parts = append(parts, c)
	}
	return parts, nil
}

// composer implements adapter.Composer.
type composer struct{}

func (composer) MessageID(platformID string) string { return slackapi.MessageTS(platformID) }

// maxSection is the limit of the text above buttons, in characters.
const maxSection = 3000

// Texts puts buttons under the last part of a question, whose parts are shorter than those of other texts.
func (composer) Texts(markdown string, shows *msg.Ask) (calls []call) {
	limit := maxText
	if shows != nil {
		limit = maxSection
	}
	for _, text := range render.Slack(markdown, limit-markRoom) {
		calls = append(calls, call{method: postMessage, text: text})
	}
	if len(calls) > 0 && shows != nil {
		last := &calls[len(calls)-1]
		for i, option := range shows.Options {
			last.buttons = append(last.buttons, slackapi.Button{Label: option, Data: msg.ButtonData(shows.ID, i+1)})
		}
	}
	return calls
}

// Files sends each file. The text stands above the first, or follows the files if it is too long for
// that.
func (c composer) Files(files []adapter.File, markdown string) (calls []call) {
	for _, f := range files {
		switch {
		case f.Size > maxUpload:
			calls = append(calls, c.Texts(f.TooLarge(maxUpload, "Slack takes"), nil)...)
		case f.Size == 0:
			calls = append(calls, c.Texts(fmt.Sprintf("The file `%s` is empty, and Slack takes no empty ones.",
				f.Name), nil)...)
		default:
			calls = append(calls, call{method: uploadFile, file: &f})
		}
	}
	caption := render.Slack(markdown, maxText-markRoom-noticeRoom)
	if len(caption) == 1 && len(calls) > 0 && calls[0].file != nil {
		calls[0].text = caption[0]
		return calls
	}
	return append(calls, c.Texts(markdown, nil)...)
}

// Reaction takes an emoji, or the name of one between colons.
func (composer) Reaction(target, given string, remove bool) (call, error) {
	name := emoji.Name(given)
	if name == "" {
		return call{}, fmt.Errorf("unknown emoji %.40q: give its name on Slack between colons", given)
	}
	method := addReaction
	if remove {
		method = removeReaction
	}
	return call{method: method, ts: target, emoji: name}, nil
}

// Undo implements adapter.UndoComposer.
func (composer) Undo(text call, turn int64) call {
	text.undo = turn
	return text
}

func (composer) Edit(target string, text call) call {
	text.method, text.ts = updateMessage, target
	return text
}

func (composer) Delete(target string) call { return call{method: deleteMessage, ts: target} }

// votes are the names of the reactions that stand for a poll's options.
func votes() []string {
	return []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "keycap_ten"}
}

// Poll makes a text, since Slack has no polls: users vote by a click on a reaction, see Seeds. To close a poll, the
// result is written into that text. Reactions stay, and count no more.
func (c composer) Poll(target string, _ *msg.Message, p *msg.Poll) ([]call, error) {
	calls := c.Texts(p.Text(msg.OptionEmoji), nil)
	if most := len(votes()); len(p.Options) > most && target == "" {
		return nil, fmt.Errorf("a poll has at most %d options", most)
	}
	if len(calls) > 0 && target != "" {
		calls[0] = c.Edit(target, calls[0])
	}
	return calls, nil
}

// Seeds implements adapter.Seeder: the bot adds a reaction for each option of a poll.
func (s *Sender) Seeds(m *msg.Message) (emoji []string) {
	if m.Kind != msg.KindPoll || m.TargetID != "" {
		return nil
	}
	p, err := msg.ParsePoll(m.Content)
	if err != nil {
		return nil
	}
	for _, name := range votes()[:min(len(p.Options), len(votes()))] {
		emoji = append(emoji, ":"+name+":")
	}
	return emoji
}
