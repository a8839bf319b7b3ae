package match

import "slices"

// literalIndex finds rows by literals of one key; every list ascends.
type literalIndex struct {
	whole        map[string][]position // by the whole value
	heads, tails affixIndex            // by its beginning, by its end
}

// affixIndex is looked up once per length that occurs. Chat addresses are short, so these are few.
type affixIndex struct {
	lengths []int // ascending
	rows    map[string][]position
}

// literal is a fixed text in an expression, by which its row can be found.
type literal struct {
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

// build indexes every row that can win. A row with the conditions of an earlier one cannot.
func (ix *Index) build() {
	var useful []position
	shared := map[literal]int{}
	seen := map[string]bool{}
	for i := range ix.routes {
		conditions := ix.routes[i].conditions()
		if seen[conditions] {
			continue
		}
		seen[conditions] = true
		useful = append(useful, position(i))
		for _, l := range ix.routes[i].expr.literals() {
			shared[l]++
		}
	}

	for _, at := range useful {
		literals := ix.routes[at].expr.literals()
		if len(literals) == 0 {
			ix.unindexed = append(ix.unindexed, at)
			continue
		}
		rarest := slices.MinFunc(literals, func(a, b literal) int { return shared[a] - shared[b] })
		ix.byKey[rarest.key].add(rarest, at)
	}
}

func (e Expr) literals() []literal {
	var literals []literal
	for i := range e.pairs {
		k, g := e.pairs[i].key, &e.pairs[i].glob
		if g.kind == exact {
			literals = append(literals, literal{k, whole, g.head})
			continue
		}
		if g.head != "" {
			literals = append(literals, literal{k, head, g.head})
		}
		if g.tail != "" {
			literals = append(literals, literal{k, tail, g.tail})
		}
	}
	return literals
}

func (ix *literalIndex) add(l literal, at position) {
	switch l.part {
	case whole:
		if ix.whole == nil {
			ix.whole = map[string][]position{}
		}
		ix.whole[l.text] = append(ix.whole[l.text], at)
	case head:
		ix.heads.add(l.text, at)
	case tail:
		ix.tails.add(l.text, at)
	}
}

func (a *affixIndex) add(text string, at position) {
	if a.rows == nil {
		a.rows = map[string][]position{}
	}
	a.rows[text] = append(a.rows[text], at)
	if i, found := slices.BinarySearch(a.lengths, len(text)); !found {
		a.lengths = slices.Insert(a.lengths, i, len(text))
	}
}
