package match

import "slices"

// shelf holds the rows filed under literals of one key; every list ascends.
type shelf struct {
	whole        map[string][]position // the whole value
	heads, tails affixes               // its start, its end
}

// affixes is asked once per length that occurs. A chat address is short, so that is few.
type affixes struct {
	lengths []int // ascending
	rows    map[string][]position
}

// label is what a row can be filed under.
type label struct {
	key  key
	part part
	text string
}

type part int

const (
	whole part = iota
	head
	tail
)

// file puts every row that can win in its place. A row with the conditions of an
// earlier one cannot.
func (ix *Index) file() {
	var live []position
	shared := map[label]int{}
	seen := map[string]bool{}
	for i := range ix.routes {
		conditions := ix.routes[i].conditions()
		if seen[conditions] {
			continue
		}
		seen[conditions] = true
		live = append(live, position(i))
		for _, l := range ix.routes[i].expr.labels() {
			shared[l]++
		}
	}
	for _, at := range live {
		labels := ix.routes[at].expr.labels()
		if len(labels) == 0 {
			ix.unfiled = append(ix.unfiled, at)
			continue
		}
		rarest := slices.MinFunc(labels, func(a, b label) int { return shared[a] - shared[b] })
		ix.byKey[rarest.key].put(rarest, at)
	}
}

// labels are the literals of e.
func (e Expr) labels() []label {
	var labels []label
	for i := range e.pairs {
		k, g := e.pairs[i].key, &e.pairs[i].glob
		if g.kind == exact {
			labels = append(labels, label{k, whole, g.head})
			continue
		}
		if g.head != "" {
			labels = append(labels, label{k, head, g.head})
		}
		if g.tail != "" {
			labels = append(labels, label{k, tail, g.tail})
		}
	}
	return labels
}

func (s *shelf) put(l label, at position) {
	switch l.part {
	case whole:
		if s.whole == nil {
			s.whole = map[string][]position{}
		}
		s.whole[l.text] = append(s.whole[l.text], at)
	case head:
		s.heads.put(l.text, at)
	case tail:
		s.tails.put(l.text, at)
	}
}

func (a *affixes) put(text string, at position) {
	if a.rows == nil {
		a.rows = map[string][]position{}
	}
	a.rows[text] = append(a.rows[text], at)
	if i, found := slices.BinarySearch(a.lengths, len(text)); !found {
		a.lengths = slices.Insert(a.lengths, i, len(text))
	}
}
