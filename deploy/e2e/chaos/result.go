package main

import (
	"cmp"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strings"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/invariants"
)

// result counts failures by the harm that they do to users.
type result struct {
	count map[invariants.Harm]int
	out   io.Writer // gets a line per case
}

func (r *result) add(harm invariants.Harm, n int, format string, args ...any) {
	r.count[harm] += n
	fmt.Fprintf(r.out, "%s: %s\n", harm, fmt.Sprintf(format, args...))
}

// String is the last line of the output.
func (r *result) String() string {
	n := func(h invariants.Harm) int { return r.count[h] }
	return fmt.Sprintf("lost %d, doubled %d, reordered %d, stuck %d",
		n(invariants.Lost), n(invariants.Doubled), n(invariants.Reordered), n(invariants.Stuck))
}

func (r *result) ok() bool { return len(r.count) == 0 }

// conclude is check of an instance that has ended its work, or is stuck as it says.
func (l *loadedInstance) conclude(out io.Writer, skip func(invariants.Invariant) bool, stuck string) (*result, error) {
	r, err := l.check(out, skip)
	switch {
	case r == nil:
		return nil, err
	case stuck != "" && r.count[invariants.Stuck] == 0:
		r.add(invariants.Stuck, 1, "%s", stuck) // the rows may not show it
	case stuck != "":
		fmt.Fprintln(out, stuck)
	}
	if !r.ok() {
		fmt.Fprint(out, l.diagnostics())
	}
	return r, err
}

// check compares the rows and the messages that platforms received with those that users wrote.
func (l *loadedInstance) check(out io.Writer, skip func(invariants.Invariant) bool) (*result, error) {
	r := &result{count: map[invariants.Harm]int{}, out: out}
	all := slices.DeleteFunc(slices.Concat(invariants.OfMessages(), invariants.AllDelivered(),
		invariants.AllConnected()), skip)
	found, err := invariants.Check(l.db, all)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		r.add(f.Harm, len(f.Rows), "%s", f)
	}

	h, err := readHistory(l.db, l.instance.Data)
	if err != nil {
		return nil, err
	}
	r.checkAnswers(h, l.load.all, l.load.hostile)
	for _, p := range l.platforms {
		r.checkSends(h, p)
		if err := r.checkPreviews(l.db, p); err != nil {
			return nil, err
		}
	}
	if !l.clockSet {
		r.checkEngagement(h)
	}
	if err := r.checkPermissions(l.db, l.instance.Data); err != nil {
		return nil, err
	}
	return r, r.checkToolMessages(l.db, l.load)
}

// key is a text in a chat. All texts are different.
type key struct{ chat, text string }

// checkAnswers checks that each message is stored once, decided, handed to one agent, and answered in
// that turn alone.
func (r *result) checkAnswers(h *history, all []sentMessage, hostile bool) {
	for _, m := range all {
		found := h.stored[key{m.chat, m.content}]
		if len(found) != 1 {
			harm := invariants.Lost
			if len(found) > 1 {
				harm = invariants.Doubled
			}
			r.add(harm, 1, "%q in %s is stored %d times", m.content, m.chat, len(found))
			continue
		}

		in := found[0]
		derived, isDerived := h.derived[in.id]
		if m.prompt == "" {
			r.checkReplies(m, h.replies[key{m.chat, in.platformID}])
			continue
		}
		if isDerived {
			in = derived
		}
		if m.file != "" && in.turn != 0 {
			r.checkFile(m, found[0])
		}
		r.checkAnswer(h, m, in, h.answers[key{m.chat, m.prompt}], hostile)
	}
}

func (r *result) checkReplies(m sentMessage, n int) {
	if n == 0 {
		r.add(invariants.Lost, 1, "%q in %s has no reply", m.content, m.chat)
	} else if n > 1 {
		r.add(invariants.Doubled, n-1, "%q in %s has %d replies", m.content, m.chat, n)
	}
}

// checkAnswer checks a message's turn, and that no other turn answered the message. An agent may be
// silent only on request, and only hostile agents may fail.
func (r *result) checkAnswer(h *history, m sentMessage, in row, answeredIn map[int64]bool, hostile bool) {
	t := h.turns[in.turn]
	answering := cmp.Or(t.with, in.turn)
	for id := range answeredIn {
		if id != answering {
			r.add(invariants.Doubled, 1, "%q in %s is row %d of turn %d, but turn %d answered it", m.content, m.chat,
				in.id, in.turn, id)
		}
	}
	if in.turn == 0 {
		if m.mustAnswer {
			r.add(invariants.Lost, 1, "%q in %s was not answered: disposition %s", m.content, m.chat, in.disposition)
		}
		return
	}

	ok := false
	switch t.reason {
	case "answered":
		ok = answeredIn[in.turn]
	case "folded": // into another one, whose answer is for both
		ok = answeredIn[answering]
	case "silent":
		ok = strings.HasPrefix(t.last, "silent ")
	case "interrupted":
		ok = t.frames > 0 && answeredIn[in.turn]
	case "agent_error", "partial":
		ok = hostile
	case "already_told": // of many failures alike a chat reads one apology
		ok = hostile && h.apologised(in.chat)
	}
	if !ok {
		r.add(invariants.Lost, 1, "%q in %s is row %d of turn %d, which ended with reason %s and no answer", m.content,
			m.chat, in.id, in.turn, t.reason)
	}
}

// checkFile checks that the file of a message that an agent received is stored, or why not: a platform may fail
// until the adapter gives up.
func (r *result) checkFile(m sentMessage, in row) {
	switch {
	case len(in.files) != 1:
		r.add(invariants.Lost, 1, "%q in %s is row %d with %d files, want 1", m.content, m.chat, in.id, len(in.files))
	case in.files[0].Error == "" && in.files[0].content != m.file:
		r.add(invariants.Lost, 1, "the file of row %d at %q is %.60q, want %q", in.id, in.files[0].Path,
			in.files[0].content, m.file)
	}
}

// checkSends compares the messages that a platform received with the outbound rows.
func (r *result) checkSends(h *history, platform chatsim.Platform) {
	m, arrivals := newMatcher(h, platform), platform.Arrivals()
	parts := m.match(arrivals)
	last := map[lane]part{}
	for i, a := range arrivals {
		if parts[i] == nil {
			r.add(invariants.Doubled, 1, "%q arrived in %s thread %q, but no row has it", a.Text, a.Chat, a.Thread)
			continue
		}
		r.countArrival(parts[i], a, last)
	}
	for _, e := range m.all {
		r.checkPart(e)
	}
}

// checkPreviews checks that no preview is left on a platform but those that a crash left before their ids were stored.
// Of these it is not known whether they were made.
func (r *result) checkPreviews(db *sql.DB, platform chatsim.Platform) error {
	name := platform.Info().Platform
	lost, err := effect{query: `SELECT count(*) FROM previews WHERE state = 'lost' AND glob(? || ':*', chat_jid)`,
		args: []any{name}}.count(db)
	if err != nil {
		return err
	}
	if left := platform.LeftPreviews(); len(left) > lost {
		r.add(invariants.Stuck, len(left)-lost,
			"%d previews are left on %s, of which %d were lost: the first one in %s at %s", len(left), name, lost,
			left[0].Chat, left[0].At)
	}
	return nil
}

// countArrival counts an arrival of a part, and checks its place, text and order. Copies may arrive in
// any order. last has the last part that arrived in each lane.
func (r *result) countArrival(e *expectedPart, a chatsim.Arrival, last map[lane]part) {
	p, in := e.part, laneOf(a)
	switch {
	case in != e.lane:
		r.add(invariants.Lost, 1, "part %d of row %d arrived in %s thread %q, not in %s thread %q", p.part, p.row,
			in.chat, in.thread, e.chat, e.thread)
	case a.Text == e.markedCopy:
		e.copies++
		return
	case a.Text != e.text:
		r.add(invariants.Lost, 1, "part %d of row %d is %q, but %q arrived", p.part, p.row, e.text, a.Text)
	}

	if e.plain++; e.plain > 1 {
		return
	}
	if before := last[in]; p.less(before) {
		r.add(invariants.Reordered, 1, "part %d of row %d arrived after part %d of row %d", p.part, p.row, before.part,
			before.row)
	}
	last[in] = p
}

// checkPart checks the state of a part against its arrivals. Marked copies are allowed, and so is a
// cancelled part that did not arrive.
func (r *result) checkPart(e *expectedPart) {
	switch {
	case e.plain > 1:
		r.add(invariants.Doubled, e.plain-1, "part %d of row %d arrived %d times unmarked", e.part.part, e.row, e.plain)
	case e.plain+e.copies == 0 && e.state != "cancelled" && !e.changes:
		r.add(invariants.Lost, 1, "part %d of row %d never arrived: state %s, error %q", e.part.part, e.row, e.state,
			e.sendError)
	case e.changes && e.state == "failed": // a change of a message is tried for seconds, and an outage lasts longer
	case e.state != "sent" && e.state != "ambiguous" && e.state != "cancelled":
		r.add(invariants.Lost, 1, "part %d of row %d has state %s, error %q", e.part.part, e.row, e.state, e.sendError)
	}
}

// checkEngagement checks that the last answer in each place opened a window, if its turn claims one.
func (r *result) checkEngagement(h *history) {
	lastAnswer := map[[2]string]delivery{}
	for _, d := range h.deliveries {
		if d.claims && (d.state == "sent" || d.state == "ambiguous") && h.opensWindow(d) {
			lastAnswer[[2]string{d.chat, d.place}] = d
		}
	}
	for at, d := range lastAnswer {
		until := d.at + engagement.Milliseconds()
		if w := h.windows[at]; w.folder == d.folder && w.until < until || w.folder == "" && w.ended == 0 {
			r.add(invariants.Lost, 1,
				"the answer in row %d must engage %s in %s %q until %d, but the window ends at %d",
				d.row, d.folder, d.chat, d.place, until, w.until)
		}
	}
}
