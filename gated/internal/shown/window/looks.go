package window

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// blank are characters without a glyph that the standard does not call ignorable: of Braille, of Egyptian hieroglyphs,
// of notes, of Khitan; and the placeholders for a missing object and for invalid text.
const blank = "\u2800\U00013441\U00013442\U0001D159\U00016FE4\uFFFC\uFFFD"

// isInvisible reports whether a character has no glyph of its own: Default_Ignorable_Code_Point, controls, private use,
// blanks.
func isInvisible(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	return unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.IsSpace(r) ||
		strings.ContainsRune(blank, r)
}

func isSeen(r rune) bool { return unicode.In(r, unicode.L, unicode.Nd, unicode.So) && !isInvisible(r) }

// maxMarks is how many marks a letter of a name has.
const maxMarks = 3

// cleanName leaves the letters, digits, emoji and spaces of a name, and the punctuation
// inside names: no brackets, colons, commas, quotation marks or line ends, nothing that looks like
// one of them, and no characters that cannot be seen.
func cleanName(name string) string {
	var b strings.Builder
	var base rune // that marks belong to, 0 for none
	marks := 0
	for _, r := range norm.NFC.String(strings.ToValidUTF8(name, "")) {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
			base = 0
		case isInvisible(r) || looksLikeMarkup(r):
		case isSeen(r) || strings.ContainsRune("-_.'", r):
			b.WriteRune(r)
			base, marks = r, 0
		case unicode.Is(unicode.Mn, r) && base != 0 && marks < maxMarks && fits(r, base):
			b.WriteRune(r)
			marks++
		}
	}
	name = strings.Join(strings.Fields(b.String()), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = strings.TrimSpace(string(runes[:maxName]))
	}
	if !strings.ContainsFunc(name, isSeen) {
		return ""
	}
	return name
}

// fits reports whether a mark is one for a character: others may not be seen there.
func fits(mark, base rune) bool {
	if unicode.Is(unicode.Inherited, mark) {
		return true
	}
	for _, script := range unicode.Scripts {
		if unicode.Is(script, mark) {
			return unicode.Is(script, base)
		}
	}
	return false
}

// looksLikeMarkup reports whether a character looks like one that ends a name in a window.
func looksLikeMarkup(r rune) bool {
	return strings.ContainsAny(prototype(r), `:,()[]<>"`)
}

func looksLikeColon(r rune) bool { return strings.Contains(prototype(r), ":") }

// prototype is the character that a character looks like, by its compatibility mapping and UTS 39.
func prototype(r rune) string {
	if r < utf8.RuneSelf {
		return string(r)
	}
	return confusable.Skeleton(string(r)) + norm.NFKC.String(string(r))
}

// looks are texts for comparing names: two names that can be confused have one in common. They are the skeletons of UTS 39 without regard
// to case, to marks, and to all that is no letter or digit. There are two, since a capital may look like a letter that
// its small form does not look like.
func looks(name string) []string {
	name = norm.NFKC.String(strings.Map(plainLetter, name))
	fold := cases.Fold()
	all := []string{
		fold.String(confusable.Skeleton(fold.String(name))),
		fold.String(confusable.Skeleton(fold.String(confusable.Skeleton(name)))),
	}
	for i, look := range all {
		letters := strings.Map(func(r rune) rune {
			switch {
			case r == 'i': // its capital is an l for UTS 39
				return 'l'
			case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.M, r) && !unicode.Is(unicode.Inherited, r):
				return r
			}
			return -1
		}, look)
		if letters != "" { // else it is all emoji
			all[i] = letters
		}
	}
	return all
}

// plainLetter is the letter of a symbol that has one and no compatibility mapping: negative circled, negative squared,
// regional.
func plainLetter(r rune) rune {
	for _, first := range []rune{0x1F150, 0x1F170, 0x1F1E6} {
		if r >= first && r < first+26 {
			return 'a' + r - first
		}
	}
	return r
}
