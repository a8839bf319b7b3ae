// Package plaintext makes what people wrote on a platform into text that others read: names that
// cannot pass for lines of their own, and words taken out without leaving holes.
package plaintext

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is a text people chose, such as a name, fit to stand beside others: on one line, without
// what turns the direction of the text around it, "" if there is nothing to be seen in it.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, s)
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) }) {
		return ""
	}
	return strings.Join(strings.Fields(s), " ")
}

// invisible tells the characters that show nothing, or turn the direction of their neighbours
// around. The joiners are none of them: emoji and several scripts are written with them.
func invisible(r rune) bool {
	switch r {
	case 0x00AD, 0x115F, 0x1160, 0x180E, 0x200B, 0x2800, 0x3164, 0xFEFF, 0xFFA0: // soft hyphen, fillers, blanks
		return true
	case 0x061C, 0x200E, 0x200F: // marks of direction
		return true
	}
	return 0x202A <= r && r <= 0x202E || 0x2060 <= r && r <= 0x206F
}

// Bracket names a thing with what is known of it: "[venue: Louvre, Paris]".
func Bracket(thing string, details ...string) string {
	var known []string
	for _, d := range details {
		if d = Line(d); d != "" {
			known = append(known, d)
		}
	}
	if len(known) > 0 {
		thing += ": " + strings.Join(known, ", ")
	}
	return "[" + thing + "]"
}

// Change is one in a text, in bytes: what stands between From and To goes, Insert comes.
type Change struct {
	From, To int
	Insert   string
	Blanks   bool // the blanks around go as well
}

// Apply makes the changes, which are in the order of the text. What one has taken out is gone for
// those that overlap with it.
func Apply(text string, changes []Change) string {
	var out []byte
	done := 0 // what of the text is written, or left out
	for _, c := range changes {
		if c.From > done {
			out = append(out, text[done:c.From]...)
			done = c.From
		}
		out = append(out, c.Insert...)
		if c.To <= done {
			continue
		}
		done = c.To
		if c.Blanks {
			var rest string
			out, rest = CloseUp(out, text[done:])
			done = len(text) - len(rest)
		}
	}
	return string(append(out, text[done:]...))
}

// CloseUp joins a text and what comes behind a word that was taken out from between them; rest is
// what of that is still to be written.
func CloseUp(out []byte, text string) (joined []byte, rest string) {
	left := bytes.TrimRightFunc(out, unicode.IsSpace)
	rest = strings.TrimLeftFunc(text, unicode.IsSpace)
	before, after := string(out[len(left):]), text[:len(text)-len(rest)]
	return append(left, blank(left, before, after, rest)...), rest
}

// blank is what remains of the blanks before and after a word that was taken out from between
// left and right: none at the ends of the text, before a comma or behind a bracket.
func blank(left []byte, before, after, right string) string {
	last, _ := utf8.DecodeLastRune(left)
	next, _ := utf8.DecodeRuneInString(right)
	switch {
	case len(left) == 0, right == "":
		return ""
	case after == "" && unicode.IsPunct(next), before == "" && unicode.In(last, unicode.Ps, unicode.Pi):
		return ""
	case after == "", strings.Contains(before, "\n"):
		return before
	}
	return after
}
