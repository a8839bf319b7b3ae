package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"arizuko/deploy/invariants"
	"arizuko/deploy/stress/wire"
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
	v.judgeSends(h, t.world.sent())
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

// judgeSends holds what the world received against what the rows say of it.
func (v *verdict) judgeSends(h *history, sends []wire.Send) {
	arrived := map[part]*arrival{}
	last := map[[2]string]part{}
	for _, s := range sends {
		p := part{s.Row, s.Part}
		if arrived[p] == nil {
			arrived[p] = &arrival{text: s.Text}
		}
		if !s.Marked {
			arrived[p].plain++
		}
		if s.Marked || arrived[p].plain > 1 {
			continue // a copy, whatever it is worth, says nothing of the order
		}
		lane := [2]string{s.Chat, s.Thread}
		if before := last[lane]; before.row > p.row || before.row == p.row && before.part > p.part {
			v.add(invariants.Reordered, 1, "part %d of row %d was sent behind part %d of row %d", p.part, p.row, before.part, before.row)
		}
		last[lane] = p
	}
	texts := map[int64]string{}
	partly := map[int64]bool{} // rows of which parts did not arrive, which is told already
	for _, d := range h.deliveries {
		if strings.HasPrefix(d.chat, "telegram:") {
			v.judgePart(d, arrived[d.part])
			if a := arrived[d.part]; a != nil {
				texts[d.row] += a.text
			} else {
				partly[d.row] = true
			}
			delete(arrived, d.part)
		}
	}
	for row, text := range texts {
		if !partly[row] && h.said[row] != text {
			v.add(invariants.Lost, 1, "row %d says %q, and %q arrived", row, h.said[row], text)
		}
	}
	for p := range arrived {
		v.add(invariants.Doubled, 1, "part %d of row %d was sent and is not in the rows", p.part, p.row)
	}
}

// arrival is what the world received of one part.
type arrival struct {
	text  string
	plain int // copies without a mark
}

// judgePart allows copies that say what they are. A part that is not known to have arrived has
// not, if there is none.
func (v *verdict) judgePart(d delivery, a *arrival) {
	switch {
	case a != nil && a.plain > 1:
		v.add(invariants.Doubled, a.plain-1, "part %d of row %d was sent %d times without a mark", d.part.part, d.row, a.plain)
	case a == nil && d.state != "cancelled":
		v.add(invariants.Lost, 1, "part %d of row %d is %s (%s), and never arrived", d.part.part, d.row, d.state, d.problem)
	case d.state != "sent" && d.state != "ambiguous" && d.state != "cancelled":
		v.add(invariants.Lost, 1, "part %d of row %d is %s: %s", d.part.part, d.row, d.state, d.problem)
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
