package main

import (
	"strings"

	"arizuko/deploy/world"
)

// book is every part that a world may receive.
type book struct {
	all  []*entry
	byID map[[2]string]*entry // by chat and the id that is written down
	says map[phrase][]*entry  // in the order of the rows
}

// entry is a part, what it says, and how often it arrived.
type entry struct {
	delivery
	text, copy    string // copy is one that says that it may be there twice
	known         string // the text of the last arrival that was found to be it
	plain, copies int
}

// phrase is a text in a lane.
type phrase struct {
	lane
	text string
}

func newBook(h *history, w world.World) *book {
	b := &book{byID: map[[2]string]*entry{}, says: map[phrase][]*entry{}}
	about := w.About()
	for _, d := range h.deliveries {
		if !strings.HasPrefix(d.chat, about.Platform+":") {
			continue
		}
		e := &entry{delivery: d}
		if parts := about.Cut(h.said[d.row]); d.part.part < len(parts) {
			e.text = parts[d.part.part]
			e.copy = about.Again(e.text)
		}
		b.all = append(b.all, e)
		if d.id != "" {
			b.byID[[2]string{d.chat, d.id}] = e
		}
		for _, text := range []string{e.text, e.copy} {
			b.says[phrase{d.lane, text}] = append(b.says[phrase{d.lane, text}], e)
		}
	}
	return b
}

// recorded is the part whose record has the id of what arrived.
func (b *book) recorded(a world.Arrival) *entry {
	e := b.byID[[2]string{a.Chat, a.ID}]
	if e != nil {
		e.known = a.Text
	}
	return e
}

// unrecorded is the part of an arrival whose id nobody wrote down: the first that says this and
// has not arrived, else any that says it.
func (b *book) unrecorded(a world.Arrival) *entry {
	all := b.says[phrase{lane{a.Chat, a.Thread}, a.Text}]
	for _, e := range all {
		if e.known != a.Text {
			e.known = a.Text
			return e
		}
	}
	if len(all) > 0 {
		return all[0]
	}
	return nil
}
