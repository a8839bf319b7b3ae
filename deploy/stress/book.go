package main

import "strings"

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

func newBook(h *history, w world) *book {
	b := &book{byID: map[[2]string]*entry{}, says: map[phrase][]*entry{}}
	_, platform := w.adapter()
	for _, d := range h.deliveries {
		if !strings.HasPrefix(d.chat, platform+":") {
			continue
		}
		e := &entry{delivery: d}
		if parts := w.cut(h.said[d.row]); d.part.part < len(parts) {
			e.text = parts[d.part.part]
			e.copy = w.again(e.text)
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
func (b *book) recorded(a arrival) *entry {
	e := b.byID[[2]string{a.chat, a.id}]
	if e != nil {
		e.known = a.text
	}
	return e
}

// unrecorded is the part of an arrival whose id nobody wrote down: the first that says this and
// has not arrived, else any that says it.
func (b *book) unrecorded(a arrival) *entry {
	all := b.says[phrase{lane{a.chat, a.thread}, a.text}]
	for _, e := range all {
		if e.known != a.text {
			e.known = a.text
			return e
		}
	}
	if len(all) > 0 {
		return all[0]
	}
	return nil
}
