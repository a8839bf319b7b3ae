package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/invariants"
)

// verdict counts what must not have happened, by what it means for people.
type verdict struct {
	count map[invariants.Harm]int
	out   io.Writer // where each case is told
}

func (v *verdict) add(harm invariants.Harm, n int, format string, args ...any) {
	v.count[harm] += n
	fmt.Fprintf(v.out, "%s: %s\n", harm, fmt.Sprintf(format, args...))
}

// String is the line that everything ends with.
func (v *verdict) String() string {
	n := func(h invariants.Harm) int { return v.count[h] }
	return fmt.Sprintf("lost %d, doubled %d, reordered %d, stuck %d",
		n(invariants.Lost), n(invariants.Doubled), n(invariants.Reordered), n(invariants.Stuck))
}

func (v *verdict) good() bool { return len(v.count) == 0 }

// judge holds the rows, and what the world received, against what was written.
func (t *trial) judge(out io.Writer, skip func(invariants.Invariant) bool) (*verdict, error) {
	v := &verdict{count: map[invariants.Harm]int{}, out: out}
	all := slices.DeleteFunc(append(invariants.Path(), invariants.Whole()...), skip)
	found, err := invariants.Check(t.db, all)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		v.add(f.Harm, len(f.Rows), "%s", f)
	}
	h, err := readHistory(t.db)
	if err != nil {
		return nil, err
	}
	v.judgeAnswers(h, t.crowd.all, t.crowd.hostile)
	for _, w := range t.worlds {
		v.judgeSends(h, w)
	}
	if !t.clockSet {
		v.judgeEngagement(h)
	}
	return v, nil
}

// key is a text in a chat. Texts are all different.
type key struct{ chat, text string }

// judgeAnswers looks for each message: stored once, decided, told to one agent, and answered in
// that one turn.
func (v *verdict) judgeAnswers(h *history, all []said, hostile bool) {
	for _, s := range all {
		found := h.stored[key{s.chat, s.content}]
		if len(found) != 1 {
			harm := invariants.Lost
			if len(found) > 1 {
				harm = invariants.Doubled
			}
			v.add(harm, 1, "%q in %s is stored %d times", s.content, s.chat, len(found))
			continue
		}
		r := found[0]
		d, handedOn := h.derived[r.id]
		asked := key{s.chat, r.platformID}
		if s.told == "" || h.excused[asked] {
			v.judgeReplies(s, h.replies[asked])
			continue
		}
		if handedOn {
			r = d
		}
		v.judgeAnswer(s, r, h.turns[r.turn], h.answers[key{s.chat, s.told}], hostile)
	}
}

func (v *verdict) judgeReplies(s said, n int) {
	if n == 0 {
		v.add(invariants.Lost, 1, "%q in %s has no reply", s.content, s.chat)
	} else if n > 1 {
		v.add(invariants.Doubled, n-1, "%q in %s has %d replies", s.content, s.chat, n)
	}
}

// judgeAnswer looks at a message's turn, and at the turns that say they were told it. Only an
// agent that was told so is silent, and only hostile ones fail.
func (v *verdict) judgeAnswer(s said, r row, t turn, saying map[int64]bool, hostile bool) {
	for id := range saying {
		if id != r.turn {
			v.add(invariants.Doubled, 1, "%q in %s is row %d of turn %d, and answered in turn %d", s.content, s.chat, r.id, r.turn, id)
		}
	}
	if r.turn == 0 {
		if s.sure {
			v.add(invariants.Lost, 1, "%q in %s is %s", s.content, s.chat, r.disposition)
		}
		return
	}
	good := false
	switch t.reason {
	case "answered":
		good = saying[r.turn]
	case "silent":
		good = strings.HasPrefix(t.last, "silent ")
	case "interrupted":
		good = t.frames > 0 && saying[r.turn]
	case "agent_error", "partial":
		good = hostile
	}
	if !good {
		v.add(invariants.Lost, 1, "%q in %s is row %d of turn %d, which ended %s and does not answer it", s.content, s.chat, r.id, r.turn, t.reason)
	}
}

// judgeSends holds what a world received against what the rows say of it.
func (v *verdict) judgeSends(h *history, w chatsim.Platform) {
	book, arrived := newBook(h, w), w.Arrivals()
	found := book.find(arrived)
	last := map[lane]part{}
	for i, a := range arrived {
		if found[i] == nil {
			v.add(invariants.Doubled, 1, "%q arrived in %s %q, and is in no row", a.Text, a.Chat, a.Thread)
			continue
		}
		v.judgeArrival(found[i], a, last)
	}
	for _, e := range book.all {
		v.judgePart(e)
	}
}

// judgeArrival counts an arrival. A copy, whatever it is worth, says nothing of the order.
func (v *verdict) judgeArrival(e *entry, a chatsim.Arrival, last map[lane]part) {
	p, in := e.part, lane{a.Chat, a.Thread}
	switch {
	case in != e.lane:
		v.add(invariants.Lost, 1, "part %d of row %d arrived in %s %q, not in %s %q", p.part, p.row, in.chat, in.thread, e.chat, e.thread)
	case a.Text == e.copy:
		e.copies++
		return
	case a.Text != e.text:
		v.add(invariants.Lost, 1, "part %d of row %d says %q, and %q arrived", p.part, p.row, e.text, a.Text)
	}
	if e.plain++; e.plain > 1 {
		return
	}
	if before := last[in]; p.less(before) {
		v.add(invariants.Reordered, 1, "part %d of row %d was sent behind part %d of row %d", p.part, p.row, before.part, before.row)
	}
	last[in] = p
}

// judgePart allows copies that say what they are. A part that is not known to have arrived has
// not, if there is none.
func (v *verdict) judgePart(e *entry) {
	switch {
	case e.plain > 1:
		v.add(invariants.Doubled, e.plain-1, "part %d of row %d was sent %d times without a mark", e.part.part, e.row, e.plain)
	case e.plain+e.copies == 0 && e.state != "cancelled":
		v.add(invariants.Lost, 1, "part %d of row %d is %s (%s), and never arrived", e.part.part, e.row, e.state, e.problem)
	case e.state != "sent" && e.state != "ambiguous" && e.state != "cancelled":
		v.add(invariants.Lost, 1, "part %d of row %d is %s: %s", e.part.part, e.row, e.state, e.problem)
	}
}

// judgeEngagement looks for the windows that answers must have opened: of the last one that
// arrived in each place, of a turn that claims it.
func (v *verdict) judgeEngagement(h *history) {
	until := map[[2]string]delivery{}
	for _, d := range h.deliveries {
		if d.claims && (d.state == "sent" || d.state == "ambiguous") && h.opens(d) {
			until[[2]string{d.chat, d.place}] = d
		}
	}
	for at, d := range until {
		if w := h.windows[at]; w.folder == d.folder && w.until < d.at+engagement.Milliseconds() || w.folder == "" && w.ended == 0 {
			v.add(invariants.Lost, 1, "the answer in row %d engages %s in %s %q until %d, not %d",
				d.row, d.folder, d.chat, d.place, d.at+engagement.Milliseconds(), w.until)
		}
	}
}
