package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/telegram"
)

// onTelegram implements platform.
type onTelegram struct {
	*telegram.Server
	users map[string]telegram.User // by id
}

// Telegram serves the page of a fake Telegram, with two users, a private chat, a group and a forum with topics.
func Telegram(tg *telegram.Server) http.Handler {
	alice, bob := tg.User("Alice", "alice"), tg.User("Bob", "bob")
	tg.DM(alice)
	tg.Supergroup("Team", alice, bob)
	forum := tg.Forum("Operations", alice, bob)
	forum.Topic(alice, "deploys")
	forum.Topic(alice, "incidents")
	bot := tg.Me().Username
	return serve(options{
		Platform: "Telegram", Bot: bot, Mention: "@" + bot, Emoji: []string{"👍", "❤", "🔥", "👎", "🤔"},
		Typing: 5 * time.Second, // as documented
		isAPI:  under("/bot", "/file/"),
	}, &onTelegram{tg, map[string]telegram.User{decimal(alice.ID): alice, decimal(bob.ID): bob}}, tg)
}

func (p *onTelegram) chats() (all []chat) {
	for _, ch := range slices.Backward(p.Chats()) { // private chats first, in the order of creation
		here := p.Place(ch.ID, 0)
		c := chat{ID: decimal(ch.ID), Name: cmp.Or(ch.Title, ch.FirstName), Whole: "all"}
		for _, u := range here.Members() {
			if _, known := p.users[decimal(u.ID)]; known {
				c.Users = append(c.Users, user{ID: decimal(u.ID), Name: u.FirstName})
			}
		}
		for _, t := range here.Topics() {
			c.Threads = append(c.Threads, thread{ID: strconv.Itoa(t.Thread), Name: t.Name})
		}
		all = append(all, c)
	}
	return all
}

func decimal(id int64) string { return strconv.FormatInt(id, 10) }

// number parses an id; 0 if it is none.
func number(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64) // 0 is not an id
	return n
}

func (p *onTelegram) place(at place) telegram.Place {
	return p.Place(number(at.Chat), int(number(at.Thread)))
}

func (p *onTelegram) messages(at place) (all []message) {
	here := p.place(at)
	topics := map[int]string{}
	if at.Thread == "" {
		for _, t := range here.Topics() {
			topics[t.Thread] = t.Name
		}
	}
	for _, m := range here.Messages() {
		l := lineOnTelegram(m)
		if m.IsTopic {
			l.Thread = topics[m.Thread]
		}
		if m.ReplyTo != nil && m.ReplyTo.TopicCreated == nil {
			l.Answered = lineOnTelegram(*m.ReplyTo).short()
		}
		reactions := here.Reactions(m.ID)
		for _, by := range slices.Sorted(maps.Keys(reactions)) {
			l.Reactions = append(l.Reactions, reactions[by]...)
		}
		all = append(all, l)
	}
	for i, n := range here.Notices() {
		all = append(all, message{
			ID: fmt.Sprint("notice-", i), From: user{Name: p.Me().FirstName, Bot: true}, Time: n.At, Text: n.Text,
			Note: "only " + n.By.FirstName + " sees this",
		})
	}
	return all
}

// lineOnTelegram is a message without its context: thread, reply and reactions.
func lineOnTelegram(m telegram.Message) message {
	l := message{
		ID: strconv.Itoa(m.ID), From: user{ID: decimal(m.From.ID), Name: m.From.FirstName, Bot: m.From.IsBot},
		Time: time.Unix(m.Date, 0), Text: m.Text + m.Caption, Note: noteOnTelegram(m), Edited: m.EditDate != 0,
		Buttons: buttons(m.Buttons()),
	}
	if m.Photo != nil {
		l.Photo = m.Photo[len(m.Photo)-1].FileID
		return l
	}
	for _, f := range []*telegram.Media{m.Document, m.Video, m.Audio, m.Voice, m.VideoNote} {
		if f != nil {
			l.attach(f.FileID, cmp.Or(f.Name, f.MIME, "a file"), "", f.Size)
		}
	}
	return l
}

// noteOnTelegram describes a message without text.
func noteOnTelegram(m telegram.Message) string {
	switch {
	case m.TopicCreated != nil:
		return "opened the topic " + m.TopicCreated.Name
	case m.Sticker != nil:
		return "sticker " + m.Sticker.Emoji
	case m.Poll != nil:
		text := "poll: " + m.Poll.Question
		for _, o := range m.Poll.Options {
			text += fmt.Sprintf(" · %s (%d)", o.Text, o.Voters)
		}
		return text
	}
	return ""
}

// post sends a message; an image is sent as a photo.
func (p *onTelegram) post(at place, d draft) error {
	sent := telegram.Draft{Text: d.Text, ReplyTo: int(number(d.ReplyTo))}
	if d.File != nil {
		sent.Attachment = &telegram.Attachment{Kind: "document", Name: d.File.Name, MIME: d.File.MIME, Data: d.File.Data}
		if strings.HasPrefix(d.File.MIME, "image/") {
			sent.Attachment.Kind = "photo"
		}
	}
	_, err := p.place(at).Post(p.users[at.As], sent)
	return err
}

func (p *onTelegram) edit(at place, id, text string) error {
	_, err := p.place(at).TryEdit(p.users[at.As], int(number(id)), text)
	return err
}

func (p *onTelegram) react(at place, id, emoji string) error {
	return p.place(at).SetReactions(p.users[at.As], int(number(id)), strings.Fields(emoji)...)
}

func (p *onTelegram) press(at place, id, data string) error {
	_, err := p.place(at).TryPress(p.users[at.As], int(number(id)), data)
	return err
}

func (p *onTelegram) lastTyped(at place) time.Time {
	here := p.place(at)
	for _, c := range slices.Backward(p.Sent()) {
		if c.ChatID == here.ChatID && (here.ThreadID == 0 || c.ThreadID == here.ThreadID) {
			if c.Action != "" && c.Action != "cancel" {
				return c.At
			}
			break
		}
	}
	return time.Time{}
}

func (p *onTelegram) file(id string) (file, bool) {
	_, name, data, found := p.FileByID(id)
	return file{Name: name, Data: data}, found
}
