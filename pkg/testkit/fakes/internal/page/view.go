package page

import (
	"cmp"
	"time"
)

// link is one entry of a navigation row.
type link struct {
	Name, Address string
	Here          bool
}

// line is one message of the view.
type line struct {
	message
	Mine                bool
	Author              string
	Clock               string
	Reply, Edit, Branch string // URLs
}

type view struct {
	where
	options
	Title                 string
	Chats, Threads, Users []link
	Lines                 []line
	IsTyping              bool
	Text                  string // of the message to edit
	Target                string // the message to reply to, in short
	Cancel                string // the URL without a reply or an edit
}

// viewOf collects the values for the template.
func (p *page) viewOf(at where, c chat) view {
	v := view{
		where: at, options: p.options, Title: c.Name, Threads: threads(at, c),
		IsTyping: time.Since(p.platform.lastTyped(at.place)) < p.Typing,
		Cancel:   at.link(func(w *where) { w.Reply, w.Edit = "", "" }),
	}
	for _, other := range p.platform.chats() {
		v.Chats = append(v.Chats, link{
			Name: other.Name, Here: other.ID == at.Chat,
			Address: at.link(func(w *where) { *w = where{place: place{Chat: other.ID, As: at.As}} }),
		})
	}
	for _, u := range c.Users {
		v.Users = append(v.Users, link{
			Name: u.Name, Here: u.ID == at.As, Address: at.link(func(w *where) { w.As = u.ID }),
		})
	}
	for _, m := range p.platform.messages(at.place) {
		v.Lines = append(v.Lines, newLine(at, m))
		if m.ID == at.Edit {
			v.Text = m.Text
		}
		if m.ID == at.Reply {
			v.Target = m.short()
		}
	}
	return v
}

func threads(at where, c chat) (all []link) {
	to := func(id, name string) {
		all = append(all, link{
			Name: name, Here: at.Thread == id,
			Address: at.link(func(w *where) { w.Thread, w.Reply, w.Edit = id, "", "" }),
		})
	}
	if c.Whole != "" && (len(c.Threads) > 0 || at.Thread != "") {
		to("", c.Whole)
	}
	isListed := at.Thread == ""
	for _, t := range c.Threads {
		to(t.ID, t.Name)
		isListed = isListed || t.ID == at.Thread
	}
	if !isListed {
		to(at.Thread, "new thread")
	}
	return all
}

func newLine(at where, m message) line {
	l := line{
		message: m, Mine: m.From.ID == at.As, Author: m.From.Name, Clock: m.Time.Local().Format("15:04:05"),
		Reply: at.link(func(w *where) { w.Reply, w.Edit = m.ID, "" }),
	}
	if l.Mine && m.Text != "" {
		l.Edit = at.link(func(w *where) { w.Edit, w.Reply = m.ID, "" })
	}
	if m.Branch != "" {
		l.Branch = at.link(func(w *where) { w.Thread, w.Reply, w.Edit = m.Branch, "", "" })
	}
	return l
}

// short is the author and the beginning of a message.
func (m message) short() string {
	const maxShort = 60 // characters
	return m.From.Name + ": " + cut(cmp.Or(m.Text, m.Note, m.FileName, "a file"), maxShort)
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if all := []rune(text); len(all) > most {
		return string(all[:most]) + "…"
	}
	return text
}
