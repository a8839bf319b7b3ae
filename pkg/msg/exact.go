package msg

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of the texts that Exact leaves as they are.
const (
	maxBlanks = 16  // blanks in a row, such as an indent
	maxEmpty  = 3   // line breaks in a row
	maxWidth  = 100 // characters of a line
)

// exactMarks replace characters in the output of Exact. A text may also contain them itself.
const (
	tabMark  = '⇥'
	lineMark = '↩' // the line goes on in the next one
)

var (
	// ownMark matches the marks that Exact writes.
	ownMark    = regexp.MustCompile(`(?i)\\u[0-9a-f]{4}|\[[0-9,]+ (?:blanks?|line breaks)\]|[⇥↩]`)
	blankRun   = regexp.MustCompile(` +`)
	lineBreaks = regexp.MustCompile(`\n+`)
	word       = regexp.MustCompile(`[\p{L}\p{M}]+`)
)

// lookalikes look like signs of ASCII, and likeLatin like its letters.
const (
	lookalikes = "\u037e\u2010\u2011\u2012\u2024\u2044\u2212\u2215\u2223\u2236\u29f8"
	likeLatin  = "асеорхуіјѕһԁАВСЕНІЈКМОРЅТХУ"
)

// Exact writes a text that users allow, so that two texts never look the same: invisible characters, lookalikes
// and runs of blanks become visible, and long lines are broken. Marks of that kind that the text itself contains
// are escaped.
func Exact(text string) string {
	text = ownMark.ReplaceAllStringFunc(text, func(mark string) string {
		first, size := utf8.DecodeRuneInString(mark)
		return escaped(first) + mark[size:]
	})
	text = word.ReplaceAllStringFunc(text, exactWord)
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\t':
			b.WriteRune(tabMark)
		case c == '\n', isSeen(c):
			b.WriteRune(c)
		default:
			b.WriteString(escaped(c))
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = exactLine(line)
	}
	return lineBreaks.ReplaceAllStringFunc(strings.Join(lines, "\n"), func(run string) string {
		if len(run) <= maxEmpty {
			return run
		}
		return fmt.Sprintf("\n[%s line breaks]\n", grouped(len(run)))
	})
}

// ExactLine is Exact for a text that is shown on one line, where white space is not kept.
func ExactLine(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(Exact(line), string(lineMark)+"\n", "")
	}
	text = strings.Join(lines, escaped('\n'))
	return blankRun.ReplaceAllStringFunc(text, func(run string) string { return blanks(run, 1) })
}

// isSeen reports whether a character leaves a mark of its own. Of blanks only the common one does.
func isSeen(c rune) bool {
	return unicode.IsPrint(c) && c != '\u2800' && !strings.ContainsRune(lookalikes, c) &&
		!unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escaped is a character by its number.
func escaped(c rune) string {
	if c > 0xffff {
		return fmt.Sprintf(`\U%08x`, c)
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// exactWord escapes the characters beyond ASCII in a word that could be taken for another one: it mixes Latin letters
// with those of scripts that resemble them, has only letters that do, or can be written in another way.
func exactWord(word string) string {
	ascii, other := false, false
	for _, c := range word {
		ascii = ascii || c < utf8.RuneSelf
		other = other || unicode.In(c, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee,
			unicode.Coptic, unicode.Lisu)
	}
	alike := ascii && other || utf8.RuneCountInString(word) > 1 && strings.Trim(word, likeLatin) == ""
	if norm.NFC.IsNormalString(word) && !alike {
		return word
	}
	var b strings.Builder
	for _, c := range word {
		if c < utf8.RuneSelf {
			b.WriteRune(c)
		} else {
			b.WriteString(escaped(c))
		}
	}
	return b.String()
}

// exactLine counts the blanks of a line that are many or at its end, and breaks a long one.
func exactLine(line string) string {
	kept := strings.TrimRight(line, " ")
	line = blankRun.ReplaceAllStringFunc(kept, func(run string) string { return blanks(run, maxBlanks) }) +
		blanks(line[len(kept):], 0)
	var b strings.Builder
	for runes := []rune(line); len(runes) > 0; {
		n := min(len(runes), maxWidth)
		b.WriteString(string(runes[:n]))
		if runes = runes[n:]; len(runes) > 0 {
			b.WriteString(string(lineMark) + "\n")
		}
	}
	return b.String()
}

// blanks is a run of blanks, by their number if they are more than limit.
func blanks(run string, limit int) string {
	switch {
	case len(run) <= limit:
		return run
	case len(run) == 1:
		return "[1 blank]"
	}
	return fmt.Sprintf("[%s blanks]", grouped(len(run)))
}

// grouped is a number with its thousands apart.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
