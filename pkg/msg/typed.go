package msg

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// asTyped is a text in the form in which it is compared with users' input: keyboards write digits and letters of
// other widths and scripts, white space of other kinds, and characters that are not seen.
func asTyped(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) || strings.ContainsRune(keycap, r) {
			return -1
		}
		if digit, ok := digitOf(r); ok {
			return '0' + digit
		}
		return r
	}, norm.NFKC.String(text))
	return strings.Join(strings.Fields(text), " ")
}

// digitOf is the value of a decimal digit of any script. Their ranges begin with a zero.
func digitOf(r rune) (digit rune, ok bool) {
	for _, s := range unicode.Nd.R16 {
		if r >= rune(s.Lo) && r <= rune(s.Hi) {
			return (r - rune(s.Lo)) % 10, true
		}
	}
	for _, s := range unicode.Nd.R32 {
		if r >= rune(s.Lo) && r <= rune(s.Hi) {
			return (r - rune(s.Lo)) % 10, true
		}
	}
	return 0, false
}
