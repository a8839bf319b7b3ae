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

// InvalidRow is a row that matches nothing because it does not parse.
type InvalidRow struct {
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

// Expr is the parsed Match.
func (r *Route) Expr() Expr { return r.expr }

// Index finds the first row that matches an event. It never changes, so any number of
// goroutines may use it.
//
// Each row is indexed by one literal of its expression, so a lookup tries only the rows
// whose literal the event has. Of the literals in a row the one that the fewest rows
// share is taken: 10,000 rows for one chat that differ by sender are indexed by sender.
// Rows without any literal, such as "sender=*x*", are tried one by one.
type Index struct {
	routes    []Route // by seq, id
	byKey     [numKeys]literalIndex
	unindexed []position // rows without a literal
}

// position is an index of Index.routes. Of two rows that match, the lower one wins.
type position int32

// Compile parses and orders rows. The invalid ones are left out of the index and returned
// in the order of the table.
func Compile(rows []Row) (*Index, []InvalidRow) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	ix := &Index{routes: make([]Route, 0, len(rows))}
	var invalid []InvalidRow
	for _, row := range rows {
		route, err := ParseRow(row)
		if err != nil {
			invalid = append(invalid, InvalidRow{ID: row.ID, Err: err})
			continue
		}
		ix.routes = append(ix.routes, route)
	}
	ix.build()
	return ix, invalid
}

// ParseRow returns the problem of a row that Compile would leave out.
func ParseRow(row Row) (Route, error) {
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
	return ix.at(ix.firstPosition(ev))
}

// at is the route at a position, nil behind the last one.
func (ix *Index) at(n position) *Route {
	if int(n) == len(ix.routes) {
		return nil
	}
	return &ix.routes[n]
}

// WrittenVerbs are the verbs of messages that users write.
func WrittenVerbs() [3]string { return [...]string{msg.VerbMessage, msg.VerbMention, msg.VerbReply} }

// FirstWritten returns the first route to a group by which anything goes that the event's sender writes in its chat,
// whatever the event's own verb is; nil when there is none.
func (ix *Index) FirstWritten(ev *Event) *Route {
	best := position(len(ix.routes))
	for _, verb := range WrittenVerbs() {
		written := *ev
		written.Verb = verb
		if at := ix.firstPosition(&written); at < best && ix.routes[at].Target.Folder != "" {
			best = at
		}
	}
	return ix.at(best)
}

// Explain lists why the rows before the one that First returns do not match: at most
// limit lines, then the number of further rows.
func (ix *Index) Explain(ev *Event, limit int) []string {
	before := ix.routes[:ix.firstPosition(ev)]
	var lines []string
	for i := range before[:min(limit, len(before))] {
		lines = append(lines, before[i].mismatch(ev))
	}
	if more := len(before) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more rows do not match", more))
	}
	return lines
}

// mismatch names the first pair that fails. The route must not match.
func (r *Route) mismatch(ev *Event) string {
	for i := range r.expr.pairs {
		p := &r.expr.pairs[i]
		if p.matches(ev) {
			continue
		}
		return fmt.Sprintf("route %d: %s=%.80s does not match %.80q", r.ID, p.key, p.glob.pattern, ev.value(p.key))
	}
	return fmt.Sprintf("route %d matches", r.ID)
}

// firstPosition returns the position of the first match, len(ix.routes) when there is none.
func (ix *Index) firstPosition(ev *Event) position {
	s := search{ix: ix, ev: ev, best: position(len(ix.routes))}
	for k := range numKeys {
		s.lookup(&ix.byKey[k], ev.value(k))
	}
	s.try(ix.unindexed)
	return s.best
}

// search is one lookup in the index, with the best match so far.
type search struct {
	ix   *Index
	ev   *Event
	best position
}

func (s *search) lookup(ix *literalIndex, value string) {
	s.try(ix.whole[value])
	for _, n := range ix.heads.lengths {
		if n > len(value) {
			break
		}
		s.try(ix.heads.rows[value[:n]])
	}
	for _, n := range ix.tails.lengths {
		if n > len(value) {
			break
		}
		s.try(ix.tails.rows[value[len(value)-n:]])
	}
}

// try takes the first of rows, in their order, that matches and precedes the best.
func (s *search) try(rows []position) {
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

// conditions returns the match of r with single spaces: rows with the same one match the
// same events.
func (r *Route) conditions() string {
	return strings.Join(strings.Fields(r.Match), " ")
}
