// Package discordpage is the web page of the fake Discord.
package discordpage

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

const typing = 10 * time.Second // how long Discord shows it, as documented

// platform implements page.Platform.
type platform struct {
	*discord.Server
	users []discord.User
	names map[string]string // of users, by id
}

// New makes two users, a private channel, and a guild with channels, a thread and a forum.
func New(dc *discord.Server) http.Handler {
	alice, bob := dc.User("Alice", "alice"), dc.User("Bob", "bob")
	p := &platform{Server: dc, users: []discord.User{alice, bob}, names: map[string]string{}}
	for _, u := range append(p.users, dc.Me()) {
		p.names[u.ID] = u.Name()
	}
	dc.DM(alice)
	team := dc.Guild("Team", alice, bob)
	team.Channel("general")
	operations := team.Channel("operations")
	operations.Thread(alice, "deploys")
	operations.Thread(alice, "incidents")
	team.Forum("questions").OpenPost(alice, "How does this work?", "Open the page as Alice or as Bob, and write.")
	return page.New(page.Options{
		Platform: "Discord", Bot: dc.Me().Name(), Mention: "@" + dc.Me().Name(),
		Emoji: []string{"👍", "❤️", "🔥", "👎", "🤔"}, Typing: typing,
	}, p, dc, isAPI)
}

func isAPI(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/gateway") ||
		strings.HasPrefix(path, "/attachments/")
}

// Chats implements page.Platform.
func (p *platform) Chats() (all []page.Chat) {
	for _, ch := range p.Channels() {
		c := page.Chat{ID: ch.ID, Name: "#" + ch.Name, Whole: "channel"}
		members := p.Place(ch.ID).Members()
		for _, u := range p.users {
			if slices.Contains(members, u) {
				c.Users = append(c.Users, page.User{ID: u.ID, Name: u.Name()})
			}
		}
		for _, t := range p.Place(ch.ID).Threads() {
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

// place finds a place. exists is false for the id of a message from which a thread can be started.
func (p *platform) place(at page.Place) (_ discord.Place, exists bool) {
	channel := p.Place(at.Chat)
	if at.Thread == "" {
		return channel, true
	}
	return p.Place(at.Thread), slices.ContainsFunc(channel.Threads(),
		func(t discord.Channel) bool { return t.ID == at.Thread })
}

func (p *platform) user(id string) discord.User {
	for _, u := range p.users {
		if u.ID == id {
			return u
		}
	}
	return p.users[0]
}

// Messages implements page.Platform.
func (p *platform) Messages(at page.Place) (all []page.Message) {
	place, exists := p.place(at)
	if !exists {
		return nil
	}
	messages := place.Messages()
	inGuild := slices.ContainsFunc(p.Channels(), func(ch discord.Channel) bool {
		return ch.ID == at.Chat &&
			ch.Type == discord.Text
	})
	for _, m := range messages {
		line := p.line(place, m)
		if i := slices.IndexFunc(messages, func(of discord.Message) bool {
			return m.Type == discord.ReplyMessage &&
				of.ID == m.Reference.MessageID
		}); i >= 0 {
			line.Answered = p.line(place, messages[i]).Short()
		}
		if inGuild && at.Thread == "" && m.Type != discord.ThreadCreated {
			line.Branch = m.ID
		}
		all = append(all, line)
	}
	for _, m := range place.Ephemeral() {
		line := p.line(place, m)
		line.Note = "only " + m.Interaction.User.Name() + " sees this"
		all = append(all, line)
	}
	return all
}

func (p *platform) line(place discord.Place, m discord.Message) page.Message {
	l := page.Message{
		ID: m.ID, From: page.User{ID: m.Author.ID, Name: m.Author.Name(), Bot: m.Author.Bot}, Time: m.Timestamp,
		Text: p.readable(m.Content), Note: note(m), Edited: m.EditedTimestamp != nil,
		Buttons: page.Buttons(m.Buttons()),
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

// userMention matches a mention in content.
var userMention = regexp.MustCompile(`<@!?(\d+)>`)

// readable replaces ids by names.
func (p *platform) readable(content string) string {
	return userMention.ReplaceAllStringFunc(content, func(mention string) string {
		return "@" + cmp.Or(p.names[userMention.FindStringSubmatch(mention)[1]], "unknown-user")
	})
}

// encode replaces names by mentions, as clients do.
func (p *platform) encode(text string) string {
	for _, u := range append(p.users, p.Me()) {
		text = strings.ReplaceAll(text, "@"+u.Name(), u.Mention())
	}
	return text
}

// note describes a message without text.
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

// Post sends a message. It starts the thread if there is none yet.
func (p *platform) Post(at page.Place, d page.Draft) error {
	place, exists := p.place(at)
	by := p.user(at.As)
	if !exists {
		var err error
		if place, err = p.Place(at.Chat).TryThreadFrom(by, at.Thread, "Thread of "+by.Name()); err != nil {
			return err
		}
	}
	draft := discord.Draft{Text: p.encode(d.Text), ReplyTo: d.ReplyTo}
	if d.File != nil {
		draft.Files = []discord.File{{Name: d.File.Name, MIME: d.File.MIME, Data: d.File.Data}}
	}
	_, err := place.Post(by, draft)
	return err
}

// Edit implements page.Platform.
func (p *platform) Edit(at page.Place, id, text string) error {
	place, exists := p.place(at)
	if !exists {
		return fmt.Errorf("no thread %s", at.Thread)
	}
	_, err := place.TryEdit(p.user(at.As), id, p.encode(text))
	return err
}

// React implements page.Platform.
func (p *platform) React(at page.Place, id, emoji string) error {
	place, exists := p.place(at)
	if !exists {
		return fmt.Errorf("no thread %s", at.Thread)
	}
	by := p.user(at.As)
	if emoji != "" {
		return place.SetReaction(by, id, emoji, true)
	}
	for _, old := range place.Reactions(id)[by.ID] {
		if err := place.SetReaction(by, id, old, false); err != nil {
			return err
		}
	}
	return nil
}

// Press implements page.Platform.
func (p *platform) Press(at page.Place, id, data string) error {
	place, exists := p.place(at)
	if !exists {
		return fmt.Errorf("no thread %s", at.Thread)
	}
	_, err := place.TryPress(p.user(at.As), id, data)
	return err
}

// IsTyping implements page.Platform.
func (p *platform) IsTyping(at page.Place) bool {
	place := cmp.Or(at.Thread, at.Chat)
	for _, c := range slices.Backward(p.Sent()) {
		if c.ChannelID == place {
			return c.Route == discord.TriggerTyping && time.Since(c.At) < typing
		}
	}
	return false
}

// File implements page.Platform.
func (p *platform) File(id string) (page.File, bool) {
	name, kind, data, found := p.FileByID(id)
	return page.File{Name: name, MIME: kind, Data: data}, found
}
