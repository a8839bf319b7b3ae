// Package slackpage is the web page of the fake Slack.
package slackpage

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

	"arizuko/pkg/testkit/fakes/internal/page"
	"arizuko/pkg/testkit/fakes/slack"
)

const typing = 5 * time.Second // how often the page checks whether a status is gone

// platform implements page.Platform.
type platform struct {
	*slack.Server
	users []slack.User
}

// New makes two users, a DM with a thread of the assistant's pane, a public and a private
// channel, and a group DM.
func New(sl *slack.Server) http.Handler {
	alice, bob := sl.User("Alice", "alice"), sl.User("Bob", "bob")
	p := &platform{Server: sl, users: []slack.User{alice, bob}}
	sl.DM(alice)
	sl.Channel("team", alice, bob)
	sl.PrivateChannel("operations", alice, bob)
	sl.GroupDM(alice, bob)
	sl.OpenPane(alice, slack.Place{})
	var glyphs []string
	for _, e := range emoji {
		glyphs = append(glyphs, e.glyph)
	}
	return page.New(page.Options{
		Platform: "Slack", Bot: sl.Me().Name, Mention: "@" + sl.Me().Name, Emoji: glyphs, Typing: typing,
	}, p, sl, slack.IsAPIPath)
}

// emoji are the reactions that the page offers, with their names on the wire.
var emoji = []struct{ glyph, name string }{{"👍", "+1"}, {"🎉", "tada"}, {"🔥", "fire"}, {"👎", "-1"},
	{"🤔", "thinking_face"}}

// Chats implements page.Platform.
func (p *platform) Chats() (all []page.Chat) {
	for _, c := range p.Channels() {
		chat := page.Chat{ID: c.ID, Name: "#" + c.Name, Whole: "channel"}
		place := p.Place(c.ID, "")
		members := place.Members()
		for _, u := range p.users {
			if slices.ContainsFunc(members, func(m slack.User) bool { return m.ID == u.ID }) {
				chat.Users = append(chat.Users, page.User{ID: u.ID, Name: u.RealName})
			}
		}
		for _, m := range place.Messages() {
			if m.TS == m.ThreadTS {
				chat.Threads = append(chat.Threads, page.Thread{ID: m.TS, Name: p.threadName(m)})
			}
		}
		switch c.Kind {
		case slack.DM:
			chat.Name, chat.Whole = p.name(c.With), "messages"
		case slack.GroupDM:
			chat.Name, chat.Whole = "Group", "messages"
		}
		if len(chat.Users) > 0 {
			all = append(all, chat)
		}
	}
	return all
}

// threadName is the beginning of a thread's first message.
func (p *platform) threadName(root slack.Message) string {
	const maxName = 20 // characters
	all := []rune(strings.Join(strings.Fields(p.readable(root.Text)), " "))
	if len(all) > maxName {
		return string(all[:maxName]) + "…"
	}
	return cmp.Or(string(all), "thread")
}

func (p *platform) name(id string) string {
	u, known := p.UserByID(id)
	if !known {
		return "unknown-user"
	}
	return u.RealName
}

func (p *platform) user(id string) slack.User {
	for _, u := range p.users {
		if u.ID == id {
			return u
		}
	}
	return p.users[0]
}

// Messages are those of a thread, or of a conversation without its threads, and ephemeral ones.
func (p *platform) Messages(at page.Place) (all []page.Message) {
	place := p.Place(at.Chat, at.Thread)
	for _, m := range append(place.Messages(), place.Ephemeral()...) {
		isThreads := m.ThreadTS != "" && m.ThreadTS != m.TS && m.Subtype != "thread_broadcast"
		if at.Thread == "" && isThreads || m.IsEphemeral && m.ThreadTS != at.Thread {
			continue
		}
		line := p.line(m)
		if stream, is := place.Stream(m.TS); is {
			line.Text = strings.TrimSpace(stream.Lines() + "\n" + line.Text)
			if stream.IsOpen() {
				line.Note = "streaming"
			}
		}
		if at.Thread == "" && !m.IsEphemeral {
			line.Branch = cmp.Or(m.ThreadTS, m.TS)
		}
		all = append(all, line)
	}
	slices.SortStableFunc(all, func(a, b page.Message) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (p *platform) line(m slack.Message) page.Message {
	seconds, _, _ := strings.Cut(m.TS, ".")
	unix, _ := strconv.ParseInt(seconds, 10, 64) // the fake's own timestamp
	l := page.Message{
		ID: m.TS, From: page.User{ID: m.User, Name: cmp.Or(m.Username, p.name(m.User)), Bot: m.BotID != ""},
		Time: time.Unix(unix, 0), Text: p.readable(m.Text), Edited: m.Edited != nil, Note: note(m),
		Buttons: page.Buttons(m.Buttons()),
	}
	for _, f := range m.Files {
		if strings.HasPrefix(f.Mimetype, "image/") && l.Photo == "" {
			l.Photo = f.ID
			continue
		}
		l.File, l.FileName = f.ID, fmt.Sprintf("%s, %d bytes", f.Name, f.Size)
	}
	for _, r := range m.Reactions {
		for range r.Count {
			l.Reactions = append(l.Reactions, glyph(r.Name))
		}
	}
	return l
}

// note describes what the text does not show.
func note(m slack.Message) string {
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

func glyph(name string) string {
	for _, e := range emoji {
		if e.name == name {
			return e.glyph
		}
	}
	return ":" + name + ":"
}

// marked matches <target|shown> in a text on the wire.
var marked = regexp.MustCompile(`<([^<>|]+)(?:\|([^<>]*))?>`)

// readable replaces ids by names, and unescapes.
func (p *platform) readable(text string) string {
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

// Post sends a message. As in a client, "/me" and slash commands are not sent as text, and a
// reply goes to the thread of the message.
func (p *platform) Post(at page.Place, d page.Draft) error {
	place, by := p.Place(at.Chat, at.Thread), p.user(at.As)
	draft := slack.Draft{Text: p.Encode(d.Text), ThreadTS: d.ReplyTo}
	command, rest, _ := strings.Cut(d.Text, " ")
	switch {
	case command == "/me":
		draft.Subtype, draft.Text = "me_message", p.Encode(rest)
	case strings.HasPrefix(command, "/") && d.File == nil:
		_, err := place.TryCommand(by, command, strings.TrimSpace(rest))
		return err
	}
	if d.File != nil {
		draft.Attachment = &slack.Attachment{Name: d.File.Name, MIME: d.File.MIME, Data: d.File.Data}
	}
	_, err := place.Post(by, draft)
	return err
}

// Edit implements page.Platform.
func (p *platform) Edit(at page.Place, id, text string) error {
	_, err := p.Place(at.Chat, at.Thread).TryEdit(p.user(at.As), id, p.Encode(text))
	return err
}

// React implements page.Platform.
func (p *platform) React(at page.Place, id, chosen string) error {
	place, by := p.Place(at.Chat, at.Thread), p.user(at.As)
	for _, e := range emoji {
		if e.glyph == chosen {
			return place.SetReaction(by, id, e.name, true)
		}
	}
	for name, users := range place.Reactions(id) {
		if slices.Contains(users, by.ID) {
			if err := place.SetReaction(by, id, name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Press implements page.Platform.
func (p *platform) Press(at page.Place, id, data string) error {
	_, err := p.Place(at.Chat, at.Thread).TryPressButton(p.user(at.As), id, data, data)
	return err
}

// IsTyping reports whether a thread has a status.
func (p *platform) IsTyping(at page.Place) bool {
	return at.Thread != "" && p.Place(at.Chat, at.Thread).Pane().Status != ""
}

// File implements page.Platform.
func (p *platform) File(id string) (page.File, bool) {
	name, contentType, data, found := p.FileByID(id)
	return page.File{Name: name, MIME: contentType, Data: data}, found
}
