package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// gap is invisible. It separates characters that would be markup side by side.
const gap = "\u200b"

// edge stands for the markup between two spans, where a rune is wanted.
const edge = '|'

// A syntax writes the spans of a line for a platform.
type syntax interface {
	// markers returns the markup around text with a mark, "" for none. after is the rune
	// that follows, 0 if that is markup or the end of the line.
	markers(m mark, after rune) (open, close string)
	// text escapes the text of a span between two runes: 0 at the ends of the
	// line, edge beside other spans. first is set for the text that a line begins with.
	text(s span, before, after rune, first bool) string
	// needsGap reports whether a gap must stand between two runes of different pieces.
	needsGap(before, after rune, from, to piece) bool
}

// A piece is a kind of text that is written at once.
type piece int

const (
	words piece = iota
	opener
	closer
	codeText // its delimiters included
)

// writeSpans writes spans one after another: those that share marks share their markup.
func writeSpans(spans []span, syn syntax) string {
	w := spanWriter{spans: spans, syn: syn}
	for i, s := range spans {
		n := common(w.open, s.marks)
		w.close(n)
		for k := n; k < len(s.marks); k++ {
			w.openMark(s.marks[k], i, k)
		}
		var before, after rune
		if i > 0 {
			before = edge
		}
		if i+1 < len(spans) {
			after = edge
		}
		p := words
		if has(s.marks, code) {
			p = codeText
		}
		w.write(syn.text(s, before, after, i == 0), p)
	}
	w.close(0)
	return w.out.String()
}

type spanWriter struct {
	out    strings.Builder
	spans  []span
	syn    syntax
	open   []mark
	closes []string // one for each of open
	last   rune
	piece  piece
}

func (w *spanWriter) write(s string, p piece) {
	if s == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(s)
	if w.out.Len() > 0 && w.syn.needsGap(w.last, first, w.piece, p) {
		w.out.WriteString(gap)
	}
	w.out.WriteString(s)
	w.last, _ = utf8.DecodeLastRuneInString(s)
	w.piece = p
}

// openMark opens the mark at depth k of span i.
func (w *spanWriter) openMark(m mark, i, k int) {
	end := i
	for end < len(w.spans) && common(w.spans[end].marks, w.spans[i].marks) > k {
		end++
	}
	var after rune
	if end < len(w.spans) && equal(w.spans[end].marks, w.spans[i].marks[:k]) {
		after, _ = utf8.DecodeRuneInString(w.spans[end].text)
	}
	open, shut := w.syn.markers(m, after)
	w.write(open, opener)
	w.open, w.closes = append(w.open, m), append(w.closes, shut)
}

func (w *spanWriter) close(keep int) {
	for i := len(w.open) - 1; i >= keep; i-- {
		w.write(w.closes[i], closer)
	}
	w.open, w.closes = w.open[:keep], w.closes[:keep]
}

// isWordRune reports whether a word can have r in it, in any script.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// walk calls each for the runes of a text, with the ones beside them.
func walk(text string, before, after rune, each func(i int, prev, r, next rune)) {
	prev := before
	for i, r := range text {
		next := after
		if rest := text[i+utf8.RuneLen(r):]; rest != "" {
			next, _ = utf8.DecodeRuneInString(rest)
		}
		each(i, prev, r, next)
		prev = r
	}
}
