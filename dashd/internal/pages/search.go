package pages

import (
	"slices"
	"strings"
	"unicode"

	"arizuko/pkg/adapter/plaintext"
)

// Search is what was found for some words, or for a number.
type Search struct {
	Query    string
	Sections []SearchSection
	Messages Messages
}

// Found reports whether anything was found.
func (s Search) Found() bool { return len(s.Sections) > 0 || len(s.Messages.Lines) > 0 }

// SearchSection is hits of one kind, and where all of them are, "" for nowhere.
type SearchSection struct {
	Title, All string
	Hits       []Hit
}

// Hit is a page that was found. JID is an address whose platform is shown, "" for none.
type Hit struct{ Path, JID, Text, Detail string }

// Piece is a part of a text, and whether it was searched for.
type Piece struct {
	Text string
	Hit  bool
}

// beforeHit is how much of a text precedes its first hit, in characters.
const beforeHit = 40

// piecesOf is a text on one line, around the first word of it that begins with a word of find.
func piecesOf(text, find string) (all []Piece) {
	line := []rune(plaintext.Line(text))
	words := strings.FieldsFunc(strings.ToLower(find), func(r rune) bool { return !isWord(r) })
	hits := make([]bool, len(line))
	first := -1
	for i := range line {
		n := lengthOfHit(line, i, words)
		if first < 0 && n > 0 {
			first = i
		}
		for at := range n {
			hits[i+at] = true
		}
	}
	start := 0
	if first > maxExcerpt-beforeHit {
		start = first - beforeHit
		all = append(all, Piece{Text: "…"})
	}
	end := min(len(line), start+maxExcerpt)
	for start < end {
		n := slices.Index(hits[start:end], !hits[start])
		if n < 0 {
			n = end - start
		}
		all = append(all, Piece{string(line[start : start+n]), hits[start]})
		start += n
	}
	if end < len(line) {
		all = append(all, Piece{Text: "…"})
	}
	return all
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// lengthOfHit is the length of the longest of the words with which a word of line begins at i, 0 for none.
func lengthOfHit(line []rune, i int, words []string) (most int) {
	if i > 0 && isWord(line[i-1]) {
		return 0
	}
	for _, word := range words {
		letters := []rune(word)
		if end := i + len(letters); end <= len(line) && strings.EqualFold(string(line[i:end]), word) {
			most = max(most, len(letters))
		}
	}
	return most
}
