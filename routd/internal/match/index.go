package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// Row is a row of table routes as stored. A nil Impulse is NULL.
type Row struct {
	ID, Seq       int64
	Match, Target string
	Impulse       json.RawMessage
}

// BadRow is a row that matches nothing because it does not parse.
type BadRow struct {
	ID  int64
	Err error
}

// Route is a parsed row.
type Route struct {
	ID, Seq int64
	Match   string
	Target  Target
	Impulse json.RawMessage // known to merge over any msg.Impulse

	expr Expr
}

// Index finds the first row that matches an event. It never changes, so any number of
// goroutines may ask it.
//
// Each row is filed under one literal of its expression, so a lookup meets only the
// rows whose literal the event has, and asks those in full. Of the literals in a row the
// one that the fewest rows share is taken: 10,000 rows for one chat that differ by
// sender are filed by sender. Rows without any literal, such as "sender=*x*", are asked
// one by one.
type Index struct {
	routes  []Route // by seq, id
	byKey   [numKeys]shelf
	unfiled []position
}

// position is a place in Index.routes. Of two rows that match, the lower one wins.
type position int32

// Compile parses and orders rows. The bad ones are left out of the index and returned in
// the order of the table.
func Compile(rows []Row) (*Index, []BadRow) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	ix := &Index{routes: make([]Route, 0, len(rows))}
	var bad []BadRow
	for _, row := range rows {
		route, err := compile(row)
		if err != nil {
			bad = append(bad, BadRow{ID: row.ID, Err: err})
			continue
		}
		ix.routes = append(ix.routes, route)
	}
	ix.file()
	return ix, bad
}

func compile(row Row) (Route, error) {
	expr, err := ParseMatch(row.Match)
	if err != nil {
		return Route{}, fmt.Errorf("match: %w", err)
	}
	target, err := ParseTarget(row.Target)
	if err != nil {
		return Route{}, fmt.Errorf("target: %w", err)
	}
	if _, err := (msg.Impulse{}).Merge(row.Impulse); err != nil {
		return Route{}, err
	}
	return Route{
		ID: row.ID, Seq: row.Seq, Match: row.Match,
		Target: target, Impulse: row.Impulse, expr: expr,
	}, nil
}

// First returns the first route whose every pair matches, nil when there is none. It
// does not allocate.
func (ix *Index) First(ev *Event) *Route {
	best := ix.first(ev)
	if int(best) == len(ix.routes) {
		return nil
	}
	return &ix.routes[best]
}

// Explain says for the rows before the one First returns why they do not match: at most
// limit lines, then how many rows more there were.
func (ix *Index) Explain(ev *Event, limit int) []string {
	before := ix.routes[:ix.first(ev)]
	var lines []string
	for i := range before[:min(limit, len(before))] {
		lines = append(lines, before[i].mismatch(ev))
	}
	if more := len(before) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more rows do not match", more))
	}
	return lines
}

// mismatch names the first pair that fails; r must not match ev.
func (r *Route) mismatch(ev *Event) string {
	for i := range r.expr.pairs {
		p := &r.expr.pairs[i]
		if p.matches(ev) {
			continue
		}
		value := fmt.Sprintf("%.80q", ev.value(p.key))
		if p.key == sender && ev.SenderName != "" {
			value += fmt.Sprintf(" (%.80q)", ev.SenderName)
		}
		return fmt.Sprintf("route %d: %s=%.80s does not match %s", r.ID, p.key, p.glob.pattern, value)
	}
	return fmt.Sprintf("route %d matches", r.ID)
}

// first is the position of the first match, len(ix.routes) when there is none.
func (ix *Index) first(ev *Event) position {
	s := search{ix: ix, ev: ev, best: position(len(ix.routes))}
	for k := range numKeys {
		s.lookup(&ix.byKey[k], ev.value(k))
	}
	s.lookup(&ix.byKey[sender], ev.SenderName)
	s.ask(ix.unfiled)
	return s.best
}

// search is one question to the index and the best answer so far.
type search struct {
	ix   *Index
	ev   *Event
	best position
}

func (s *search) lookup(sh *shelf, value string) {
	s.ask(sh.whole[value])
	for _, n := range sh.heads.lengths {
		if n > len(value) {
			break
		}
		s.ask(sh.heads.rows[value[:n]])
	}
	for _, n := range sh.tails.lengths {
		if n > len(value) {
			break
		}
		s.ask(sh.tails.rows[value[len(value)-n:]])
	}
}

// ask takes the first of rows, in their order, that matches and beats the best.
func (s *search) ask(rows []position) {
	for _, at := range rows {
		if at >= s.best {
			return
		}
		if s.ix.routes[at].expr.Matches(s.ev) {
			s.best = at
			return
		}
	}
}

// conditions is the expression of r with single spaces, the same for rows that differ in
// nothing else.
func (r *Route) conditions() string {
	return strings.Join(strings.Fields(r.Match), " ")
}
