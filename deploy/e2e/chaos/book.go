package main

import (
	"slices"
	"strings"

	"arizuko/deploy/e2e/chatsim"
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

func newBook(h *history, w chatsim.Platform) *book {
	b := &book{byID: map[[2]string]*entry{}, says: map[phrase][]*entry{}}
	about := w.Info()
	for _, d := range h.deliveries {
		if !strings.HasPrefix(d.chat, about.Platform+":") {
			continue
		}
		e := &entry{delivery: d}
		if parts := about.Split(h.said[d.row]); d.part.part < len(parts) {
			e.text = parts[d.part.part]
			e.copy = chatsim.MarkedCopy(e.text)
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

// find is the part of each arrival, nil for one that is in no row.
func (b *book) find(arrived []chatsim.Arrival) []*entry {
	found := make([]*entry, len(arrived))
	for i, a := range arrived {
		if found[i] = b.byID[[2]string{a.Chat, a.ID}]; found[i] != nil {
			found[i].known = a.Text
		}
	}
	next := make([]*entry, len(arrived)) // what is recorded to have arrived behind it in its lane
	last := map[lane]*entry{}
	for i, a := range slices.Backward(arrived) {
		next[i] = last[laneOf(a)]
		if found[i] != nil {
			last[laneOf(a)] = found[i]
		}
	}
	clear(last)
	for i, a := range arrived {
		if found[i] == nil {
			found[i] = b.unrecorded(a, last[laneOf(a)], next[i])
		}
		if found[i] != nil {
			last[laneOf(a)] = found[i]
		}
	}
	return found
}

func laneOf(a chatsim.Arrival) lane { return lane{a.Chat, a.Thread} }

// unrecorded is the part of an arrival whose id nobody wrote down: of those that say this, one
// that has not arrived and stands between its neighbours, else one that has not arrived, else any.
func (b *book) unrecorded(a chatsim.Arrival, before, behind *entry) *entry {
	all := b.says[phrase{laneOf(a), a.Text}]
	open := slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return e.known == a.Text })
	between := func(e *entry) bool {
		return (before == nil || !e.less(before.part)) && (behind == nil || !behind.less(e.part))
	}
	switch i := slices.IndexFunc(open, between); {
	case len(all) == 0:
		return nil
	case len(open) == 0:
		return all[0]
	default:
		e := open[max(i, 0)]
		e.known = a.Text
		return e
	}
}
