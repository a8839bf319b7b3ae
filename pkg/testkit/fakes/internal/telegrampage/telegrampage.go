// Package telegrampage is the web page of the fake Telegram.
package telegrampage

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/internal/page"
	"arizuko/pkg/testkit/fakes/telegram"
)

const typing = 5 * time.Second // how long Telegram shows it, as documented

// platform implements page.Platform.
type platform struct {
	*telegram.Server
	users []telegram.User
}

// New makes two users, a private chat, a group and a forum with topics.
func New(tg *telegram.Server) http.Handler {
	alice, bob := tg.User("Alice", "alice"), tg.User("Bob", "bob")
	p := &platform{Server: tg, users: []telegram.User{alice, bob}}
	tg.DM(alice)
	tg.Supergroup("Team", alice, bob)
	forum := tg.Forum("Operations", alice, bob)
	forum.Topic(alice, "deploys")
	forum.Topic(alice, "incidents")
	bot := tg.Me().Username
	return page.New(page.Options{
		Platform: "Telegram", Bot: bot, Mention: "@" + bot, Emoji: []string{"👍", "❤", "🔥", "👎", "🤔"}, Typing: typing,
	}, p, tg, isAPI)
}

func isAPI(path string) bool {
	return strings.HasPrefix(path, "/bot") || strings.HasPrefix(path, "/file/")
}

// Chats implements page.Platform.
func (p *platform) Chats() (all []page.Chat) {
	for _, chat := range slices.Backward(p.Server.Chats()) { // private chats first, in the order of creation
		place := p.Place(chat.ID, 0)
		c := page.Chat{ID: strconv.FormatInt(chat.ID, 10), Name: cmp.Or(chat.Title, chat.FirstName), Whole: "all"}
		members := place.Members()
		for _, u := range p.users {
			if slices.Contains(members, u) {
				c.Users = append(c.Users, page.User{ID: strconv.FormatInt(u.ID, 10), Name: u.FirstName})
			}
		}
		for _, t := range place.Topics() {
			c.Threads = append(c.Threads, page.Thread{ID: strconv.Itoa(t.Thread), Name: t.Name})
		}
		all = append(all, c)
	}
	return all
}

// number parses an id; 0 if it is none.
func number(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64) // 0 is not an id
	return n
}

func (p *platform) place(at page.Place) telegram.Place {
	return p.Place(number(at.Chat), int(number(at.Thread)))
}

func (p *platform) user(id string) telegram.User {
	for _, u := range p.users {
		if u.ID == number(id) {
			return u
		}
	}
	return p.users[0]
}

// Messages implements page.Platform.
func (p *platform) Messages(at page.Place) (all []page.Message) {
	place := p.place(at)
	topics := map[int]string{}
	if at.Thread == "" {
		for _, t := range place.Topics() {
			topics[t.Thread] = t.Name
		}
	}
	for _, m := range place.Messages() {
		l := line(m)
		if m.IsTopic {
			l.Thread = topics[m.Thread]
		}
		if m.ReplyTo != nil && m.ReplyTo.TopicCreated == nil {
			l.Answered = line(*m.ReplyTo).Short()
		}
		reactions := place.Reactions(m.ID)
		for _, user := range slices.Sorted(maps.Keys(reactions)) {
			l.Reactions = append(l.Reactions, reactions[user]...)
		}
		all = append(all, l)
	}
	for i, n := range place.Notices() {
		all = append(all, page.Message{
			ID: fmt.Sprint("notice-", i), From: page.User{Name: p.Me().FirstName, Bot: true}, Time: n.At, Text: n.Text,
			Note: "only " + n.By.FirstName + " sees this",
		})
	}
	return all
}

// line is a message without its context: thread, reply and reactions.
func line(m telegram.Message) page.Message {
	l := page.Message{
		ID: strconv.Itoa(m.ID), From: page.User{ID: strconv.FormatInt(m.From.ID, 10), Name: m.From.FirstName,
			Bot: m.From.IsBot},
		Time: time.Unix(m.Date, 0), Text: m.Text + m.Caption, Note: note(m), Edited: m.EditDate != 0,
		Buttons: page.Buttons(m.Buttons()),
	}
	if m.Photo != nil {
		l.Photo = m.Photo[len(m.Photo)-1].FileID
		return l
	}
	for _, f := range []*telegram.Media{m.Document, m.Video, m.Audio, m.Voice, m.VideoNote} {
		if f != nil {
			l.File, l.FileName = f.FileID, fmt.Sprintf("%s, %d bytes", cmp.Or(f.Name, f.MIME, "a file"), f.Size)
			break
		}
	}
	return l
}

// note describes a message without text.
func note(m telegram.Message) string {
	switch {
	case m.TopicCreated != nil:
		return "opened the topic " + m.TopicCreated.Name
	case m.Sticker != nil:
		return "sticker " + m.Sticker.Emoji
	case m.Poll != nil:
		var options []string
		for _, o := range m.Poll.Options {
			options = append(options, fmt.Sprintf("%s (%d)", o.Text, o.Voters))
		}
		return "poll: " + m.Poll.Question + " · " + strings.Join(options, " · ")
	}
	return ""
}

// Post sends a message; an image is sent as a photo.
func (p *platform) Post(at page.Place, d page.Draft) error {
	draft := telegram.Draft{Text: d.Text, ReplyTo: int(number(d.ReplyTo))}
	if d.File != nil {
		draft.Attachment = &telegram.Attachment{Kind: "document", Name: d.File.Name, MIME: d.File.MIME,
			Data: d.File.Data}
		if strings.HasPrefix(d.File.MIME, "image/") {
			draft.Attachment.Kind = "photo"
		}
	}
	_, err := p.place(at).Post(p.user(at.As), draft)
	return err
}

// Edit implements page.Platform.
func (p *platform) Edit(at page.Place, id, text string) error {
	_, err := p.place(at).TryEdit(p.user(at.As), int(number(id)), text)
	return err
}

// React implements page.Platform.
func (p *platform) React(at page.Place, id, emoji string) error {
	return p.place(at).SetReactions(p.user(at.As), int(number(id)), strings.Fields(emoji)...)
}

// Press implements page.Platform.
func (p *platform) Press(at page.Place, id, data string) error {
	_, err := p.place(at).TryPress(p.user(at.As), int(number(id)), data)
	return err
}

// IsTyping implements page.Platform.
func (p *platform) IsTyping(at page.Place) bool {
	place := p.place(at)
	for _, c := range slices.Backward(p.Sent()) {
		if c.ChatID == place.ChatID && (place.ThreadID == 0 || c.ThreadID == place.ThreadID) {
			return c.Action != "" && c.Action != "cancel" && time.Since(c.At) < typing
		}
	}
	return false
}

// File implements page.Platform.
func (p *platform) File(id string) (page.File, bool) {
	_, name, data, found := p.FileByID(id)
	return page.File{Name: name, Data: data}, found
}
