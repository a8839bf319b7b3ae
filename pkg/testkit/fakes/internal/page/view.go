package page

// link is one entry of a navigation row.
type link struct {
	Name, Address string
	Here          bool
}

// line is one message of the view.
type line struct {
	Message
	Mine                bool
	Author              string
	Clock               string
	Reply, Edit, Branch string // URLs
}

type view struct {
	where
	Options
	Title                 string
	Chats, Threads, Users []link
	Lines                 []line
	IsTyping              bool
	Text                  string // of the message to edit
	Target                string // the message to reply to, in short
	Cancel                string // the URL without a reply or an edit
}

// viewOf collects what the template shows.
func (p *page) viewOf(at where, chat Chat) view {
	v := view{
		where: at, Options: p.Options, Title: chat.Name, IsTyping: p.platform.IsTyping(at.Place),
		Threads: threads(at, chat),
		Cancel:  at.link(func(w *where) { w.Reply, w.Edit = "", "" }),
	}
	for _, c := range p.platform.Chats() {
		v.Chats = append(v.Chats, link{
			Name: c.Name, Here: c.ID == at.Chat, Address: at.link(func(w *where) {
				*w = where{Place: Place{Chat: c.ID,
					As: at.As}}
			}),
		})
	}
	for _, u := range chat.Users {
		v.Users = append(v.Users, link{Name: u.Name, Address: at.link(func(w *where) { w.As = u.ID }),
			Here: u.ID == at.As})
	}
	for _, m := range p.platform.Messages(at.Place) {
		v.Lines = append(v.Lines, newLine(at, m))
		if m.ID == at.Edit {
			v.Text = m.Text
		}
		if m.ID == at.Reply {
			v.Target = m.Short()
		}
	}
	return v
}

func threads(at where, chat Chat) (all []link) {
	to := func(id, name string) {
		all = append(all, link{
			Name: name, Here: at.Thread == id, Address: at.link(func(w *where) {
				w.Thread, w.Reply, w.Edit = id, "",
					""
			}),
		})
	}
	if chat.Whole != "" && (len(chat.Threads) > 0 || at.Thread != "") {
		to("", chat.Whole)
	}
	isListed := at.Thread == ""
	for _, t := range chat.Threads {
		to(t.ID, t.Name)
		isListed = isListed || t.ID == at.Thread
	}
	if !isListed {
		to(at.Thread, "new thread")
	}
	return all
}

func newLine(at where, m Message) line {
	l := line{
		Message: m, Mine: m.From.ID == at.As, Author: m.From.Name, Clock: m.Time.Local().Format("15:04:05"),
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

// Short is the author and the beginning of a message.
func (m Message) Short() string {
	const maxShort = 60 // characters
	text := m.Text
	for _, instead := range []string{m.Note, m.FileName, "a file"} {
		if text == "" {
			text = instead
		}
	}
	if all := []rune(text); len(all) > maxShort {
		text = string(all[:maxShort]) + "…"
	}
	return m.From.Name + ": " + text
}
