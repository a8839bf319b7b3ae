package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/page"
)

const typing = 10 * time.Second // how long Discord shows it

// world is Discord as the page sees it.
type world struct {
	*discord.Server
	people []discord.User
	names  map[string]string // of users, by id
}

// newPage makes two people, a private channel, and a guild with channels, a thread and a forum.
func newPage(dc *discord.Server) http.Handler {
	alice, bob := dc.User("Alice", "alice"), dc.User("Bob", "bob")
	w := &world{Server: dc, people: []discord.User{alice, bob}, names: map[string]string{}}
	for _, u := range append(w.people, dc.Me()) {
		w.names[u.ID] = u.Name()
	}
	dc.DM(alice)
	team := dc.Guild("Team", alice, bob)
	team.Channel("general")
	operations := team.Channel("operations")
	operations.Thread(alice, "deploys")
	operations.Thread(alice, "incidents")
	team.Forum("questions").OpenPost(alice, "How does this work?", "Open the page as Alice or as Bob, and write.")
	return page.New(page.Options{
		Platform: "Discord", Bot: dc.Me().Name(), Mention: "@" + dc.Me().Name(), Emoji: []string{"👍", "❤️", "🔥", "👎", "🤔"}, Typing: typing,
	}, w, dc, isAPI)
}

func isAPI(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/gateway") || strings.HasPrefix(path, "/attachments/")
}

func (w *world) Chats() (all []page.Chat) {
	for _, ch := range w.Channels() {
		c := page.Chat{ID: ch.ID, Name: "#" + ch.Name, Whole: "channel"}
		members := w.Place(ch.ID).Members()
		for _, u := range w.people {
			if slices.Contains(members, u) {
				c.People = append(c.People, page.Person{ID: u.ID, Name: u.Name()})
			}
		}
		for _, t := range w.Place(ch.ID).Threads() {
			c.Threads = append(c.Threads, page.Thread{ID: t.ID, Name: t.Name})
		}
		switch ch.Type {
		case discord.Private:
			c.Name = ch.Recipients[0].Name()
		case discord.Forum:
			c.Whole = ""
		}
		all = append(all, c)
	}
	return all
}

// place is where somebody looks. A thread that is none yet is a message that one may hang on.
func (w *world) place(at page.Place) (p discord.Place, exists bool) {
	channel := w.Place(at.Chat)
	if at.Thread == "" {
		return channel, true
	}
	return w.Place(at.Thread), slices.ContainsFunc(channel.Threads(), func(t discord.Channel) bool { return t.ID == at.Thread })
}

func (w *world) person(id string) discord.User {
	for _, u := range w.people {
		if u.ID == id {
			return u
		}
	}
	return w.people[0]
}

func (w *world) Messages(at page.Place) (all []page.Message) {
	place, exists := w.place(at)
	if !exists {
		return nil
	}
	messages := place.Messages()
	inGuild := slices.ContainsFunc(w.Channels(), func(ch discord.Channel) bool { return ch.ID == at.Chat && ch.Type == discord.Text })
	for _, m := range messages {
		line := w.line(place, m)
		if i := slices.IndexFunc(messages, func(of discord.Message) bool { return m.Type == discord.ReplyMessage && of.ID == m.Reference.MessageID }); i >= 0 {
			line.Answered = w.line(place, messages[i]).Short()
		}
		if inGuild && at.Thread == "" && m.Type != discord.ThreadCreated {
			line.Branch = m.ID
		}
		all = append(all, line)
	}
	return all
}

func (w *world) line(place discord.Place, m discord.Message) page.Message {
	l := page.Message{
		ID: m.ID, From: page.Person{ID: m.Author.ID, Name: m.Author.Name(), Bot: m.Author.Bot}, Time: m.Timestamp,
		Text: w.readable(m.Content), Note: note(m), Edited: m.EditedTimestamp != nil,
	}
	if l.Note != "" {
		l.Text = ""
	}
	for _, a := range m.Attachments {
		if strings.HasPrefix(a.ContentType, "image/") && l.Photo == "" {
			l.Photo = a.ID
			continue
		}
		l.File, l.FileName = a.ID, fmt.Sprintf("%s, %d bytes", a.Filename, a.Size)
	}
	reactions := place.Reactions(m.ID)
	for _, user := range slices.Sorted(maps.Keys(reactions)) {
		l.Reactions = append(l.Reactions, reactions[user]...)
	}
	return l
}

// userMention is a mention as content has it.
var userMention = regexp.MustCompile(`<@!?(\d+)>`)

// readable is content with names instead of ids.
func (w *world) readable(content string) string {
	return userMention.ReplaceAllStringFunc(content, func(mention string) string {
		return "@" + cmp.Or(w.names[userMention.FindStringSubmatch(mention)[1]], "unknown-user")
	})
}

// written is a text with mentions instead of names, as clients send it.
func (w *world) written(text string) string {
	for _, u := range append(w.people, w.Me()) {
		text = strings.ReplaceAll(text, "@"+u.Name(), u.Mention())
	}
	return text
}

// note tells in words what a message without text is.
func note(m discord.Message) string {
	switch {
	case m.Type == discord.ThreadCreated:
		return "started the thread " + m.Content
	case m.Type == discord.ThreadStarter:
		return "started this thread with a message"
	case m.Type == discord.UserJoin:
		return "joined"
	case m.Type == discord.PollResultMessage:
		return "the poll has ended"
	case len(m.Stickers) > 0:
		return "sticker " + m.Stickers[0].Name
	case m.Poll != nil:
		text := "poll: " + m.Poll.Question.Text
		for _, a := range m.Poll.Answers {
			votes := 0
			for _, c := range m.Poll.Results.Counts {
				if c.ID == a.ID {
					votes = c.Count
				}
			}
			text += fmt.Sprintf(" · %s (%d)", a.Media.Text, votes)
		}
		return text
	case m.Content == "" && len(m.Embeds) > 0:
		return m.Embeds[0].Title + " " + m.Embeds[0].Description
	}
	return ""
}

// Post says something. In a thread that is none yet it starts one from the message.
func (w *world) Post(at page.Place, d page.Draft) error {
	place, exists := w.place(at)
	by := w.person(at.As)
	if !exists {
		var err error
		if place, err = w.Place(at.Chat).TryThreadFrom(by, at.Thread, "Thread of "+by.Name()); err != nil {
			return err
		}
	}
	draft := discord.Draft{Text: w.written(d.Text), ReplyTo: d.ReplyTo}
	if d.File != nil {
		draft.Files = []discord.File{{Name: d.File.Name, MIME: d.File.MIME, Data: d.File.Data}}
	}
	_, err := place.Post(by, draft)
	return err
}

func (w *world) Revise(at page.Place, id, text string) error {
	place, exists := w.place(at)
	if !exists {
		return fmt.Errorf("no thread %s", at.Thread)
	}
	_, err := place.TryEdit(w.person(at.As), id, w.written(text))
	return err
}

func (w *world) React(at page.Place, id, emoji string) error {
	place, exists := w.place(at)
	if !exists {
		return fmt.Errorf("no thread %s", at.Thread)
	}
	by := w.person(at.As)
	if emoji != "" {
		return place.SetReaction(by, id, emoji, true)
	}
	for _, theirs := range place.Reactions(id)[by.ID] {
		if err := place.SetReaction(by, id, theirs, false); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) IsTyping(at page.Place) bool {
	place := cmp.Or(at.Thread, at.Chat)
	for _, c := range slices.Backward(w.Sent()) {
		if c.ChannelID == place {
			return c.Route == discord.TriggerTyping && time.Since(c.At) < typing
		}
	}
	return false
}

func (w *world) File(id string) (page.File, bool) {
	name, kind, data, found := w.FileByID(id)
	return page.File{Name: name, MIME: kind, Data: data}, found
}
