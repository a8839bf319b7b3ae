package page

// link is one choice in a row of choices.
type link struct {
	Name, Address string
	Here          bool
}

// line is one message as the page shows it.
type line struct {
	Message
	Mine                bool
	Who                 string
	Clock               string
	Reply, Edit, Branch string // addresses
}

type view struct {
	where
	Options
	Title                  string
	Chats, Threads, People []link
	Lines                  []line
	IsTyping               bool
	Text                   string // of the message that is edited
	Target                 string // of the message that is answered
	Cancel                 string
}

// look collects what the page shows.
func (p *page) look(at where, chat Chat) view {
	v := view{
		where: at, Options: p.Options, Title: chat.Name, IsTyping: p.world.IsTyping(at.Place), Threads: threads(at, chat),
		Cancel: at.link(func(w *where) { w.Reply, w.Edit = "", "" }),
	}
	for _, c := range p.world.Chats() {
		v.Chats = append(v.Chats, link{
			Name: c.Name, Here: c.ID == at.Chat, Address: at.link(func(w *where) { *w = where{Place: Place{Chat: c.ID, As: at.As}} }),
		})
	}
	for _, who := range chat.People {
		v.People = append(v.People, link{Name: who.Name, Address: at.link(func(w *where) { w.As = who.ID }), Here: who.ID == at.As})
	}
	for _, m := range p.world.Messages(at.Place) {
		v.Lines = append(v.Lines, shown(at, m))
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
			Name: name, Here: at.Thread == id, Address: at.link(func(w *where) { w.Thread, w.Reply, w.Edit = id, "", "" }),
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

func shown(at where, m Message) line {
	l := line{
		Message: m, Mine: m.From.ID == at.As, Who: m.From.Name, Clock: m.Time.Local().Format("15:04:05"),
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

// Short is the beginning of what a message says.
func (m Message) Short() string {
	const most = 60
	text := m.Text
	for _, instead := range []string{m.Note, m.FileName, "a file"} {
		if text == "" {
			text = instead
		}
	}
	if all := []rune(text); len(all) > most {
		text = string(all[:most]) + "…"
	}
	return m.From.Name + ": " + text
}
