package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/fakeplatform/telegram"
)

// link is one choice in a row of choices.
type link struct {
	Name, Address string
	Here          bool
}

// line is one message as the page shows it.
type line struct {
	ID             int
	Mine, Bot      bool
	Who, Time      string
	Topic          string // outside the topic's own view
	Answered       string
	Text           string
	Note           string // what is not text
	Photo          string // address
	File, FileName string
	Edited         bool
	Reactions      []string
	Reply, Edit    string // addresses
}

type view struct {
	where
	Title                 string
	Chats, Topics, People []link
	Lines                 []line
	Typing                bool
	Bot                   string
	Text                  string // of the message that is edited
	Target                string // of the message that is answered
	Cancel                string
	Emoji                 []string
}

// look collects what the page shows.
func (p *page) look(at where, place telegram.Place) view {
	v := view{
		where: at, Bot: p.tg.Me().Username, Typing: p.isTyping(at), Emoji: []string{"👍", "❤", "🔥", "👎", "🤔"},
		Cancel: at.link(func(w *where) { w.Reply, w.Edit = 0, 0 }),
	}
	for _, c := range p.tg.Chats() {
		address := at.link(func(w *where) { *w = where{Chat: c.ID, As: at.As} })
		if c.Type == telegram.Private {
			address = at.link(func(w *where) { *w = where{Chat: c.ID, As: c.ID} })
		}
		name := cmp.Or(c.Title, c.FirstName)
		v.Chats = append(v.Chats, link{Name: name, Address: address, Here: c.ID == at.Chat})
		if c.ID == at.Chat {
			v.Title = name
		}
		if c.ID == at.Chat && c.IsForum {
			v.Topics = topics(at, place)
		}
	}
	members := place.Members()
	for _, u := range p.people {
		if slices.Contains(members, u) {
			v.People = append(v.People, link{Name: u.FirstName, Address: at.link(func(w *where) { w.As = u.ID }), Here: u.ID == at.As})
		}
	}
	for _, m := range place.Messages() {
		v.Lines = append(v.Lines, p.line(at, place, m))
		if int64(m.ID) == at.Edit {
			v.Text = m.Text + m.Caption
		}
		if int64(m.ID) == at.Reply {
			v.Target = short(m)
		}
	}
	return v
}

func topics(at where, place telegram.Place) []link {
	all := []link{{Name: "all", Address: at.link(func(w *where) { w.Thread = 0 }), Here: at.Thread == 0}}
	for _, t := range place.Topics() {
		all = append(all, link{
			Name: t.Name, Here: at.Thread == int64(t.Thread),
			Address: at.link(func(w *where) { w.Thread, w.Reply, w.Edit = int64(t.Thread), 0, 0 }),
		})
	}
	return all
}

func (p *page) line(at where, place telegram.Place, m telegram.Message) line {
	l := line{
		ID: m.ID, Mine: m.From.ID == at.As, Bot: m.From.IsBot, Who: m.From.FirstName,
		Time: time.Unix(m.Date, 0).Format("15:04:05"), Text: m.Text + m.Caption, Edited: m.EditDate != 0, Note: note(m),
		Reply: at.link(func(w *where) { w.Reply, w.Edit = int64(m.ID), 0 }),
	}
	if m.IsTopic && at.Thread == 0 {
		for _, t := range place.Topics() {
			if t.Thread == m.Thread {
				l.Topic = t.Name
			}
		}
	}
	if m.ReplyTo != nil && m.ReplyTo.TopicCreated == nil {
		l.Answered = short(*m.ReplyTo)
	}
	if l.Mine && l.Text != "" {
		l.Edit = at.link(func(w *where) { w.Edit, w.Reply = int64(m.ID), 0 })
	}
	switch {
	case m.Photo != nil:
		l.Photo = "/files/" + m.Photo[len(m.Photo)-1].FileID
	default:
		l.File, l.FileName = document(m)
	}
	reactions := place.Reactions(m.ID)
	for _, user := range slices.Sorted(maps.Keys(reactions)) {
		l.Reactions = append(l.Reactions, reactions[user]...)
	}
	return l
}

func document(m telegram.Message) (address, name string) {
	for _, f := range []*telegram.Media{m.Document, m.Video, m.Audio, m.Voice, m.VideoNote} {
		if f != nil {
			return "/files/" + f.FileID, fmt.Sprintf("%s, %d bytes", cmp.Or(f.Name, f.MIME, "a file"), f.Size)
		}
	}
	return "", ""
}

// note tells in words what a message without text is.
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

// short is the beginning of what a message says.
func short(m telegram.Message) string {
	const most = 60
	all := []rune(cmp.Or(m.Text, m.Caption, note(m), "a file"))
	if len(all) > most {
		return m.From.FirstName + ": " + string(all[:most]) + "…"
	}
	return m.From.FirstName + ": " + string(all)
}

// isTyping reports whether the bot said so a moment ago, and has sent nothing since.
func (p *page) isTyping(at where) bool {
	for _, c := range slices.Backward(p.tg.Sent()) {
		if c.ChatID == at.Chat && (at.Thread == 0 || int64(c.ThreadID) == at.Thread) {
			return c.Action != "" && c.Action != "cancel" && time.Since(c.At) < typing
		}
	}
	return false
}
