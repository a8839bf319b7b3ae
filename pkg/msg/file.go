package msg

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFileName bounds the name of a file that users see, in bytes.
const maxFileName = 120

// FileName is a file's name as users see it: one line without slashes, and without characters that are not
// seen, such as those that turn the direction of the text around.
func FileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimLeft(name, ". ")
	for len(name) > maxFileName { // keep the extension
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	return cmp.Or(name, "file")
}

// IsPicture reports whether browsers may show a type as it is: pictures that cannot run anything.
func IsPicture(kind string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind)
}
