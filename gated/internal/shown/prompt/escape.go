package prompt

import (
	"strings"
	"unicode/utf8"
)

// escape writes s as plain text for an XML parser: between tags, or between the
// double quotes of an attribute.
func escape(b *strings.Builder, s string, inAttr bool) {
	written, width := 0, 0
	for i := 0; i < len(s); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(s[i:])
		if r == '\r' && strings.HasPrefix(s[i+1:], "\n") {
			width = len("\r\n")
		}
		if instead, ok := replacement(r, width, inAttr); ok {
			b.WriteString(s[written:i])
			b.WriteString(instead)
			written = i + width
		}
	}
	b.WriteString(s[written:])
}

// replacement returns the replacement of a character of width bytes; ok is false if
// it needs none.
func replacement(r rune, width int, inAttr bool) (instead string, ok bool) {
	switch {
	case r == '&':
		return "&amp;", true
	case r == '<':
		return "&lt;", true
	case r == '>': // "]]>" is not text in XML
		return "&gt;", true
	case r == '"':
		return "&quot;", inAttr
	case r == '\t':
		return "&#x9;", inAttr // a parser may read it as a space
	case r == '\n', r == '\r' && inAttr:
		return "&#xA;", inAttr
	case r == '\r':
		return "\n", true
	case r < ' ', r == 0xFFFE, r == 0xFFFF: // not in XML 1.0, not even as a reference
		return "", true
	case r == utf8.RuneError && width == 1: // not UTF-8; a real U+FFFD takes three bytes
		return "\uFFFD", true
	}
	return "", false
}
