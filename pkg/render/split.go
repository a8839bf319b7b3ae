package render

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// split cuts a document into parts that are not longer than the limit, in the unit and with the
// markup of a writer.
func split(doc []line, limit int, w writer) [][]line {
	s := splitter{w: w, limit: limit}
	for _, l := range doc {
		s.add(l)
	}
	s.flush()
	return s.parts
}

type splitter struct {
	w     writer
	limit int
	parts [][]line
	part  []line
	sizes []int // of the part up to each of its lines, without the closing text
}

// add adds a line to the part, or cuts the part where that is best and continues in a new one.
func (s *splitter) add(l line) {
	for {
		if len(s.part) == 0 && !l.visible() {
			return
		}
		if size, ok := s.with(l); ok {
			s.push(l, size)
			return
		}
		if s.cutBetween(l) {
			continue
		}
		head, tail := s.cut(l)
		switch {
		case len(head.spans) > 0:
			s.push(head, 0)
			s.flush()
			if len(tail.spans) == 0 {
				return
			}
			l = tail
		case len(s.part) > 0:
			s.flush()
		default: // not even one character fits beside so much markup
			l = withoutMarkup(l)
		}
	}
}

// cutBetween ends the part before the last block that leaves it at least half full, else before
// the line, unless the line must be cut anyway and much room would stay empty.
func (s *splitter) cutBetween(l line) bool {
	if len(s.part) == 0 {
		return false
	}
	if l.starts && s.full(len(s.part)) {
		s.flush()
		return true
	}
	for i := len(s.part) - 1; i > 0 && s.full(i); i-- {
		if s.part[i].starts {
			rest := slices.Clone(s.part[i:])
			s.part = s.part[:i]
			s.flush()
			for _, r := range rest {
				s.add(r)
			}
			return true
		}
	}
	alone := splitter{w: s.w, limit: s.limit}
	if s.full(len(s.part)) || alone.fits(l) {
		s.flush()
		return true
	}
	return false
}

// full reports whether the first n lines of the part fill at least half of it.
func (s *splitter) full(n int) bool { return 2*s.sizes[n-1] >= s.limit }

func (s *splitter) size() int {
	if len(s.sizes) == 0 {
		return 0
	}
	return s.sizes[len(s.sizes)-1]
}

func (s *splitter) last() *line {
	if len(s.part) == 0 {
		return nil
	}
	return &s.part[len(s.part)-1]
}

func (s *splitter) fits(l line) bool {
	_, ok := s.with(l)
	return ok
}

// with measures the part with another line, and reports whether that can be closed within the
// limit.
func (s *splitter) with(l line) (size int, ok bool) {
	if l.longerThan(s.limit) {
		return 0, false
	}
	size = s.size() + s.w.size(s.w.next(s.last(), &l))
	return size, size+s.w.size(s.w.end(&l)) <= s.limit
}

// push adds a line, with the size that the part then has. No size is read after the last line.
func (s *splitter) push(l line, size int) {
	s.part, s.sizes = append(s.part, l), append(s.sizes, size)
}

// flush ends the part, without the empty lines at its end.
func (s *splitter) flush() {
	for len(s.part) > 0 && !s.last().visible() {
		s.part = s.part[:len(s.part)-1]
	}
	if len(s.part) > 0 {
		s.parts = append(s.parts, s.part)
	}
	s.part, s.sizes = nil, nil
}

// A cutPoint is where a line can be cut: before a byte of one of its spans.
type cutPoint struct {
	span, offset int
	rank         int // 1 between words, 2 between sentences
}

// cut takes as much from the beginning of a line as fits into the rest of the part: whole words and
// sentences, unless that leaves more than half of it unused.
func (s *splitter) cut(l line) (head, tail line) {
	points := l.cutPoints(s.limit)
	n := sort.Search(len(points), func(i int) bool { return !s.fits(l.upTo(points[i])) })
	if n == 0 {
		return line{}, l
	}
	best := n - 1
	for i := n - 1; i >= n/2 && points[best].rank < 2; i-- {
		if points[i].rank > points[best].rank {
			best = i
		}
	}
	// Markup depends on the text around it, so that less text may need more of it.
	for best > 0 && !s.fits(l.upTo(points[best])) {
		best--
	}
	head = l.upTo(points[best])
	if !s.fits(head) {
		return line{}, l
	}
	return head, l.from(points[best])
}

// upTo returns the line up to a point, without the blanks at its end.
func (l line) upTo(p cutPoint) line {
	l.spans = slices.Clone(l.spans[:p.span+1])
	last := &l.spans[p.span]
	last.text = last.text[:p.offset]
	if trimmed := strings.TrimRight(last.text, " \t"); l.fence == nil && trimmed != "" {
		last.text = trimmed
	}
	if last.text == "" {
		l.spans = l.spans[:p.span]
	}
	return l
}

// from returns the line from a point on, without the blanks at its beginning. It takes the spans
// of the line with it.
func (l line) from(p cutPoint) line {
	l.spans = l.spans[p.span:]
	l.spans[0].text = l.spans[0].text[p.offset:]
	if l.fence == nil {
		l.spans[0].text = strings.TrimLeft(l.spans[0].text, " \t")
	}
	if l.spans[0].text == "" {
		l.spans = l.spans[1:]
	}
	l.indent, l.bullet, l.starts = l.after(), "", false
	return l
}

// cutPoints returns the points after each of the first n characters of a line.
func (l line) cutPoints(n int) []cutPoint {
	var out []cutPoint
	var c cutter
	for i, sp := range l.spans {
		rest := sp.text
		if c.cluster != "" {
			rest = rest[c.extend(rest):]
		}
		for rest != "" {
			if c.cluster != "" {
				out = append(out, l.cutPoint(i, len(sp.text)-len(rest), c.rank(rest)))
			}
			if len(out) == n {
				return out
			}
			rest = rest[c.next(rest):]
		}
	}
	if k := len(l.spans) - 1; k >= 0 {
		out = append(out, cutPoint{span: k, offset: len(l.spans[k].text), rank: 2})
	}
	return out
}

// cutPoint takes the end of a span for the beginning of the next one.
func (l line) cutPoint(span, offset, rank int) cutPoint {
	if offset == 0 {
		span, offset = span-1, len(l.spans[span-1].text)
	}
	return cutPoint{span, offset, rank}
}

func (l line) longerThan(limit int) bool {
	for _, sp := range l.spans {
		if len(sp.text) > utf8.UTFMax*limit {
			return true
		}
		if limit -= runeLen(sp.text); limit < 0 {
			return true
		}
	}
	return false
}

// withoutMarkup returns the text of a line without its markup.
func withoutMarkup(l line) line {
	var out line
	for _, sp := range l.spans {
		out.spans = appendSpan(out.spans, sp.text, nil)
	}
	return out
}

func (l line) visible() bool {
	return l.bullet != "" || slices.ContainsFunc(l.spans, func(sp span) bool {
		return strings.ContainsFunc(sp.text, func(r rune) bool { return !unicode.IsSpace(r) && !invisible(r) })
	})
}

// invisible reports whether platforms show nothing for a character: formats, fillers and the blank
// pattern of Braille.
func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) || r == 0x115f || r == 0x1160 || r == 0x3164 ||
		r == 0xffa0 || r == 0x2800
}
