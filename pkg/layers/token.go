// Package layers parses the parts of a message's text that are for the gateway
// itself (sticky tokens, commands, prefixes), and finds the group that a name
// means. It does no I/O.
package layers

import (
	"strings"
	"unicode"

	"arizuko/pkg/msg"
)

// The two sigils of tokens.
const (
	GroupSigil = '@'
	TopicSigil = '#'
)

// Sticky is a message that is one bare token. An empty Name clears the pin.
type Sticky struct {
	Sigil byte   // GroupSigil or TopicSigil
	Name  string // without the sigil; of a group, possibly a path like "acme/eng"
}

// ParseSticky parses a whole message that is "@name", "@a/path", "#name", or a lone
// "@" or "#".
func ParseSticky(content string) (Sticky, bool) {
	word, rest := firstWord(content)
	sigil, name, ok := parseToken(word)
	if !ok || rest != "" {
		return Sticky{}, false
	}
	return Sticky{Sigil: sigil, Name: name}, true
}

// Prefix is a token at the start of a message, with more text after it.
type Prefix struct {
	Sigil byte   // GroupSigil or TopicSigil
	Name  string // without the sigil, never empty
	Rest  string // the rest, never empty, white space before it removed
}

// ParsePrefix parses "@name text", "@a/path text" or "#name text", also with a comma or
// colon after the name, as users write to each other. White space must
// follow: "@bob's turn" and "#1. first" are plain text.
func ParsePrefix(content string) (Prefix, bool) {
	word, rest := firstWord(content)
	if n := len(word); n > 0 && (word[n-1] == ',' || word[n-1] == ':') {
		word = word[:n-1]
	}
	sigil, name, ok := parseToken(word)
	if !ok || name == "" || rest == "" {
		return Prefix{}, false
	}
	return Prefix{Sigil: sigil, Name: name, Rest: rest}, true
}

// parseToken parses a word that is a sigil followed by a name. The name may be
// empty.
func parseToken(word string) (sigil byte, name string, ok bool) {
	if word == "" {
		return 0, "", false
	}
	sigil, name = word[0], word[1:]
	switch sigil {
	case GroupSigil:
		ok = name == "" || msg.ValidFolder(name) == nil
	case TopicSigil:
		ok = name == "" || msg.ValidTopicName(name)
	}
	return sigil, name, ok
}

// maxWord bounds a token or command, in bytes: how much of a long text is parsed,
// and the length of names that can be pinned.
const maxWord = 256

// firstWord splits content after its first word. The rest begins with the second one.
// A word longer than maxWord is returned as "".
func firstWord(content string) (word, rest string) {
	content = strings.TrimLeftFunc(content, unicode.IsSpace)
	end := strings.IndexFunc(content[:min(len(content), maxWord+1)], unicode.IsSpace)
	switch {
	case end >= 0:
		return content[:end], strings.TrimLeftFunc(content[end:], unicode.IsSpace)
	case len(content) > maxWord:
		return "", ""
	}
	return content, ""
}
