// Package plaintext makes plain text from users' input on a platform: names that cannot forge lines, and
// removals that leave no extra blanks.
package plaintext

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// UnknownUser stands for a user whose name the platform does not reveal.
const UnknownUser = "an unknown user"

// Line makes one line of a text chosen by users, such as a name: without characters that change the
// direction of the text around it, "" if no character is visible.
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
	if !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.N, unicode.P,
			unicode.S)
	}) {
		return ""
	}
	return strings.Join(strings.Fields(s), " ")
}

// invisible reports whether a character shows nothing, or changes the direction of text. The joiners do
// not count: emoji and several scripts need them.
func invisible(r rune) bool {
	switch r {
	case 0x00AD, 0x115F, 0x1160, 0x180E, 0x200B, 0x2800, 0x3164, 0xFEFF, 0xFFA0: // soft hyphen, fillers, blanks
		return true
	case 0x061C, 0x200E, 0x200F: // marks of direction
		return true
	}
	return 0x202A <= r && r <= 0x202E || 0x2060 <= r && r <= 0x206F
}

// Bracket names a thing with its details: "[venue: Louvre, Paris]".
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

// Named is whom a part of a text names.
type Named uint8

// Whom it names.
const (
	NoName Named = iota
	Us
	Other
	Token // another user, or a group if it begins the text: "@name" is the form of both
)

// Change replaces the bytes of a text from From to To by Insert.
type Change struct {
	From, To int
	Insert   string
	Names    Named
}

// Apply makes changes, which are in the order of the text. A change that overlaps an earlier one does not
// bring back text that the earlier one has removed. Our own name is removed with the blanks around it, unless another
// is named beside it: the sentence needs both names.
func Apply(text string, changes []Change) string {
	var out []byte
	done := 0 // how much of the text is written or removed
	for i, c := range changes {
		cut := c.Names == Us && !accompanied(text, changes, i)
		if !cut && c.Insert == text[c.From:c.To] {
			continue
		}
		if c.From > done {
			out = append(out, text[done:c.From]...)
			done = c.From
		}
		if !cut {
			out = append(out, c.Insert...)
		}
		if c.To <= done {
			continue
		}
		done = c.To
		if cut {
			var rest string
			out, rest = CloseUp(out, text[done:])
			done = len(text) - len(rest)
		}
	}
	return string(append(out, text[done:]...))
}

// accompanied reports whether another is named beside a change.
func accompanied(text string, changes []Change, i int) bool {
	c := changes[i]
	if i > 0 && changes[i-1].Names > Us && changes[i-1].To <= c.From && Beside(text[changes[i-1].To:c.From]) {
		return true
	}
	if i+1 == len(changes) || changes[i+1].Names <= Us || changes[i+1].From < c.To {
		return false
	}
	between := text[c.To:changes[i+1].From]
	if changes[i+1].Names == Token && strings.TrimSpace(text[:c.From]+between) == "" {
		return false
	}
	return Beside(between)
}

// Limits of the text between two names that belong together.
const (
	maxBetween     = 64 // bytes
	maxConjunction = 3  // characters of a word such as "and", in any language
)

// Beside reports whether a text between two names joins them, as in "Ann, Bob" and "Ann and Bob".
func Beside(between string) bool {
	if len(between) > maxBetween {
		return false
	}
	word := strings.TrimFunc(between, func(r rune) bool {
		return unicode.IsSpace(r) && r != '\n' || strings.ContainsRune(",;:&+", r)
	})
	return utf8.RuneCountInString(word) <= maxConjunction &&
		!strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
}

// CloseUp joins the texts before and after a removed word; rest is the part of the second that is still
// to be written.
func CloseUp(out []byte, text string) (joined []byte, rest string) {
	left := bytes.TrimRightFunc(out, unicode.IsSpace)
	rest = strings.TrimLeftFunc(text, unicode.IsSpace)
	before, after := string(out[len(left):]), text[:len(text)-len(rest)]
	return append(left, blank(left, before, after, rest)...), rest
}

// blank returns the blanks that stay where a word was removed between left and right: none at the
// ends of the text, before a comma or after an opening bracket.
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
