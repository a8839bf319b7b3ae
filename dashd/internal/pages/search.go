package pages

import (
	"regexp"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// Search is what was found for some words, or for a number.
type Search struct {
	Query     string
	Turn      *msg.Turn // with this number, nil for none
	Message   *msg.Message
	Groups    []msg.Group
	Chats     []rows.SeenChat
	MoreChats bool // there are more than these
	Senders   []rows.Sender
	Messages  Messages
}

// Piece is a part of a text, and whether it was searched for.
type Piece struct {
	Text string
	Hit  bool
}

// beforeHit is how much of a text precedes its first hit, in bytes.
const beforeHit = 40

func (p *Pages) pieces(text, find string) []Piece { return piecesOf(p.Hide(text), find) }

// found is what hits returned last: a page asks for each of its texts.
var found atomic.Pointer[finder]

type finder struct {
	find string
	hit  *regexp.Regexp
}

// hits matches the words that begin with a word of find, as its first group. It is nil if find has no words.
func hits(find string) *regexp.Regexp {
	if last := found.Load(); last != nil && last.find == find {
		return last.hit
	}
	words := strings.FieldsFunc(find, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
	if len(words) == 0 {
		return nil
	}
	hit := regexp.MustCompile(`(?i)(?:^|[^\pL\pN\pM])((?:` + strings.Join(words, "|") + `)[\pL\pN\pM]*)`)
	found.Store(&finder{find, hit})
	return hit
}

// piecesOf is a text on one line, around the first of its words that begin with a word of find: those are the hits.
func piecesOf(text, find string) (all []Piece) {
	hit := hits(find)
	if hit == nil {
		return []Piece{{Text: Line(text)}}
	}
	line := plaintext.Line(text)
	if at := hit.FindStringSubmatchIndex(line); at != nil && at[2] > maxExcerpt {
		start := at[2] - beforeHit
		for !utf8.RuneStart(line[start]) {
			start--
		}
		line = "…" + line[start:]
	}
	line = Excerpt(line)
	done := 0
	for _, at := range hit.FindAllStringSubmatchIndex(line, -1) {
		all = append(all, Piece{Text: line[done:at[2]]}, Piece{line[at[2]:at[3]], true})
		done = at[3]
	}
	return append(all, Piece{Text: line[done:]})
}
