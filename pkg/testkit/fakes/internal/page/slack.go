package page

import (
	"cmp"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/slack"
)

// onSlack implements platform.
type onSlack struct {
	*slack.Server
	users map[string]slack.User // by id
}

// slackEmoji are the reactions that the page offers, and their names on the wire.
var slackEmoji = map[string]string{"👍": "+1", "🎉": "tada", "🔥": "fire", "👎": "-1", "🤔": "thinking_face"}

// Slack serves the page of a fake Slack, with two users, a DM with a thread of the assistant's pane, a public and a
// private channel, and a group DM.
func Slack(sl *slack.Server) http.Handler {
	alice, bob := sl.User("Alice", "alice"), sl.User("Bob", "bob")
	sl.DM(alice)
	sl.Channel("team", alice, bob)
	sl.PrivateChannel("operations", alice, bob)
	sl.GroupDM(alice, bob)
	sl.OpenPane(alice, slack.Place{})
	return serve(options{
		Platform: "Slack", Bot: sl.Me().Name, Mention: "@" + sl.Me().Name,
		Emoji:  []string{"👍", "🎉", "🔥", "👎", "🤔"},
		Typing: 5 * time.Second, // how often the page checks whether a status is gone
		isAPI:  slack.IsAPIPath,
	}, &onSlack{sl, map[string]slack.User{alice.ID: alice, bob.ID: bob}}, sl)
}

func (p *onSlack) chats() (all []chat) {
	for _, ch := range p.Channels() {
		c, here := chat{ID: ch.ID, Name: "#" + ch.Name, Whole: "channel"}, p.Place(ch.ID, "")
		for _, u := range here.Members() {
			if _, known := p.users[u.ID]; known {
				c.Users = append(c.Users, user{ID: u.ID, Name: u.RealName})
			}
		}
		for _, m := range here.Messages() {
			if m.TS == m.ThreadTS {
				c.Threads = append(c.Threads, thread{ID: m.TS, Name: p.threadName(m)})
			}
		}
		switch ch.Kind {
		case slack.DM:
			c.Name, c.Whole = p.name(ch.With), "messages"
		case slack.GroupDM:
			c.Name, c.Whole = "Group", "messages"
		}
		if len(c.Users) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// threadName is the beginning of a thread's first message.
func (p *onSlack) threadName(root slack.Message) string {
	const maxName = 20 // characters
	return cmp.Or(cut(strings.Join(strings.Fields(p.readable(root.Text)), " "), maxName), "thread")
}

func (p *onSlack) name(id string) string {
	u, _ := p.UserByID(id)
	return cmp.Or(u.RealName, "unknown-user")
}

// messages are those of a thread, or of a conversation without its threads, and ephemeral ones.
func (p *onSlack) messages(at place) (all []message) {
	here := p.Place(at.Chat, at.Thread)
	for _, m := range append(here.Messages(), here.Ephemeral()...) {
		inThread := m.ThreadTS != "" && m.ThreadTS != m.TS && m.Subtype != "thread_broadcast"
		if at.Thread == "" && inThread || m.IsEphemeral && m.ThreadTS != at.Thread {
			continue
		}
		l := p.line(m)
		if stream, is := here.Stream(m.TS); is {
			l.Text = strings.TrimSpace(stream.Lines() + "\n" + l.Text)
			if stream.IsOpen() {
				l.Note = "streaming"
			}
		}
		if at.Thread == "" && !m.IsEphemeral {
			l.Branch = cmp.Or(m.ThreadTS, m.TS)
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b message) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (p *onSlack) line(m slack.Message) message {
	seconds, _, _ := strings.Cut(m.TS, ".")
	unix, _ := strconv.ParseInt(seconds, 10, 64) // the fake's own timestamp
	l := message{
		ID: m.TS, From: user{ID: m.User, Name: cmp.Or(m.Username, p.name(m.User)), Bot: m.BotID != ""},
		Time: time.Unix(unix, 0), Text: p.readable(m.Text), Edited: m.Edited != nil, Note: noteOnSlack(m),
		Buttons: buttons(m.Buttons()),
	}
	for _, f := range m.Files {
		l.attach(f.ID, f.Name, f.Mimetype, f.Size)
	}
	for _, r := range m.Reactions {
		shown := ":" + r.Name + ":"
		for glyph, name := range slackEmoji {
			if name == r.Name {
				shown = glyph
			}
		}
		l.Reactions = append(l.Reactions, slices.Repeat([]string{shown}, r.Count)...)
	}
	return l
}

// noteOnSlack describes properties that the text does not show.
func noteOnSlack(m slack.Message) string {
	var notes []string
	if m.IsEphemeral {
		notes = append(notes, "only one user sees this")
	}
	if m.Subtype == "thread_broadcast" {
		notes = append(notes, "also sent to the channel")
	}
	if m.ReplyCount > 0 {
		notes = append(notes, fmt.Sprintf("replies in the thread: %d", m.ReplyCount))
	}
	return strings.Join(notes, " · ")
}

// marked matches <target|shown> in a text on the wire.
var marked = regexp.MustCompile(`<([^<>|]+)(?:\|([^<>]*))?>`)

// readable replaces ids by names, and unescapes.
func (p *onSlack) readable(text string) string {
	return html.UnescapeString(marked.ReplaceAllStringFunc(text, func(found string) string {
		parts := marked.FindStringSubmatch(found)
		target, shown := parts[1], parts[2]
		switch {
		case strings.HasPrefix(target, "@"):
			u, _ := p.UserByID(target[1:])
			return "@" + cmp.Or(u.Name, shown, "unknown-user")
		case strings.HasPrefix(target, "#"):
			return "#" + cmp.Or(shown, target[1:])
		case strings.HasPrefix(target, "!"):
			return "@" + target[1:]
		case shown == "" || shown == target:
			return target
		}
		return shown + " (" + target + ")"
	}))
}

// post sends a message. As in a client, "/me" and slash commands are not sent as text, and a reply goes to the thread
// of the message.
func (p *onSlack) post(at place, d draft) error {
	here, by := p.Place(at.Chat, at.Thread), p.users[at.As]
	sent := slack.Draft{Text: p.Encode(d.Text), ThreadTS: d.ReplyTo}
	command, rest, _ := strings.Cut(d.Text, " ")
	switch {
	case command == "/me":
		sent.Subtype, sent.Text = "me_message", p.Encode(rest)
	case strings.HasPrefix(command, "/") && d.File == nil:
		_, err := here.TryCommand(by, command, strings.TrimSpace(rest))
		return err
	}
	if d.File != nil {
		sent.Attachment = &slack.Attachment{Name: d.File.Name, MIME: d.File.MIME, Data: d.File.Data}
	}
	_, err := here.Post(by, sent)
	return err
}

func (p *onSlack) edit(at place, id, text string) error {
	_, err := p.Place(at.Chat, at.Thread).TryEdit(p.users[at.As], id, p.Encode(text))
	return err
}

func (p *onSlack) react(at place, id, emoji string) error {
	here, by := p.Place(at.Chat, at.Thread), p.users[at.As]
	if name := slackEmoji[emoji]; name != "" {
		return here.SetReaction(by, id, name, true)
	}
	for name, users := range here.Reactions(id) {
		if slices.Contains(users, by.ID) {
			if err := here.SetReaction(by, id, name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *onSlack) press(at place, id, data string) error {
	_, err := p.Place(at.Chat, at.Thread).TryPressButton(p.users[at.As], id, data, data)
	return err
}

// lastTyped is now while a thread has a status.
func (p *onSlack) lastTyped(at place) time.Time {
	if at.Thread == "" || p.Place(at.Chat, at.Thread).Pane().Status == "" {
		return time.Time{}
	}
	return time.Now()
}

func (p *onSlack) file(id string) (file, bool) {
	name, _, data, found := p.FileByID(id)
	return file{Name: name, Data: data}, found
}
