package main

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

const typing = 5 * time.Second // how often the page looks whether a status has faded

// world is Slack as the page sees it.
type world struct {
	*slack.Server
	people []slack.User
}

// newPage makes two people, a DM with a thread of the assistant's pane, a public and a private
// channel, and a group DM.
func newPage(sl *slack.Server) http.Handler {
	alice, bob := sl.User("Alice", "alice"), sl.User("Bob", "bob")
	w := &world{Server: sl, people: []slack.User{alice, bob}}
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
	}, w, sl, slack.IsAPIPath)
}

// emoji are those to react with at the page, with their names on the wire.
var emoji = []struct{ glyph, name string }{{"👍", "+1"}, {"❤️", "heart"}, {"🔥", "fire"}, {"👎", "-1"}, {"🤔", "thinking_face"}}

func (w *world) Chats() (all []page.Chat) {
	for _, c := range w.Channels() {
		chat := page.Chat{ID: c.ID, Name: "#" + c.Name, Whole: "channel"}
		place := w.Place(c.ID, "")
		members := place.Members()
		for _, u := range w.people {
			if slices.ContainsFunc(members, func(m slack.User) bool { return m.ID == u.ID }) {
				chat.People = append(chat.People, page.Person{ID: u.ID, Name: u.RealName})
			}
		}
		for _, m := range place.Messages() {
			if m.TS == m.ThreadTS {
				chat.Threads = append(chat.Threads, page.Thread{ID: m.TS, Name: w.threadName(m)})
			}
		}
		switch c.Kind {
		case slack.DM:
			chat.Name, chat.Whole = w.name(c.With), "messages"
		case slack.GroupDM:
			chat.Name, chat.Whole = "Group", "messages"
		}
		if len(chat.People) > 0 {
			all = append(all, chat)
		}
	}
	return all
}

// threadName is the beginning of a thread's first message.
func (w *world) threadName(root slack.Message) string {
	const most = 20
	all := []rune(strings.Join(strings.Fields(w.readable(root.Text)), " "))
	if len(all) > most {
		return string(all[:most]) + "…"
	}
	return cmp.Or(string(all), "thread")
}

func (w *world) name(id string) string {
	u, known := w.UserByID(id)
	if !known {
		return "unknown-user"
	}
	return u.RealName
}

func (w *world) person(id string) slack.User {
	for _, u := range w.people {
		if u.ID == id {
			return u
		}
	}
	return w.people[0]
}

// Messages are those of a thread, or those of a conversation without its threads, and what only
// one person can see.
func (w *world) Messages(at page.Place) (all []page.Message) {
	place := w.Place(at.Chat, at.Thread)
	for _, m := range append(place.Messages(), place.Ephemeral()...) {
		isThreads := m.ThreadTS != "" && m.ThreadTS != m.TS && m.Subtype != "thread_broadcast"
		if at.Thread == "" && isThreads || m.IsEphemeral && m.ThreadTS != at.Thread {
			continue
		}
		line := w.line(m)
		if at.Thread == "" && !m.IsEphemeral {
			line.Branch = cmp.Or(m.ThreadTS, m.TS)
		}
		all = append(all, line)
	}
	slices.SortStableFunc(all, func(a, b page.Message) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (w *world) line(m slack.Message) page.Message {
	seconds, _, _ := strings.Cut(m.TS, ".")
	unix, _ := strconv.ParseInt(seconds, 10, 64) // own timestamps only
	l := page.Message{
		ID: m.TS, From: page.Person{ID: m.User, Name: cmp.Or(m.Username, w.name(m.User)), Bot: m.BotID != ""},
		Time: time.Unix(unix, 0), Text: w.readable(m.Text), Edited: m.Edited != nil, Note: note(m),
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

// note tells what else there is to a message.
func note(m slack.Message) string {
	var notes []string
	if m.IsEphemeral {
		notes = append(notes, "only one person sees this")
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

// marked is what stands between < and > on the wire: who or what, and how it is shown.
var marked = regexp.MustCompile(`<([^<>|]+)(?:\|([^<>]*))?>`)

// readable is a text with names instead of ids, and without what is escaped.
func (w *world) readable(text string) string {
	return html.UnescapeString(marked.ReplaceAllStringFunc(text, func(found string) string {
		parts := marked.FindStringSubmatch(found)
		what, shown := parts[1], parts[2]
		switch {
		case strings.HasPrefix(what, "@"):
			u, _ := w.UserByID(what[1:])
			return "@" + cmp.Or(u.Name, shown, "unknown-user")
		case strings.HasPrefix(what, "#"):
			return "#" + cmp.Or(shown, what[1:])
		case strings.HasPrefix(what, "!"):
			return "@" + what[1:]
		case shown == "" || shown == what:
			return what
		}
		return shown + " (" + what + ")"
	}))
}

// Post says something, as a client does: "/me" and slash commands are none of that. An answer
// goes to the thread of the message.
func (w *world) Post(at page.Place, d page.Draft) error {
	place, by := w.Place(at.Chat, at.Thread), w.person(at.As)
	draft := slack.Draft{Text: w.Encode(d.Text), ThreadTS: d.ReplyTo}
	command, rest, _ := strings.Cut(d.Text, " ")
	switch {
	case command == "/me":
		draft.Subtype, draft.Text = "me_message", w.Encode(rest)
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

// Revise implements page.World.
func (w *world) Revise(at page.Place, id, text string) error {
	_, err := w.Place(at.Chat, at.Thread).TryEdit(w.person(at.As), id, w.Encode(text))
	return err
}

// React implements page.World.
func (w *world) React(at page.Place, id, chosen string) error {
	place, by := w.Place(at.Chat, at.Thread), w.person(at.As)
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

// IsTyping reports whether a thread bears a status.
func (w *world) IsTyping(at page.Place) bool {
	return at.Thread != "" && w.Place(at.Chat, at.Thread).Pane().Status != ""
}

// File implements page.World.
func (w *world) File(id string) (page.File, bool) {
	name, contentType, data, found := w.FileByID(id)
	return page.File{Name: name, MIME: contentType, Data: data}, found
}
