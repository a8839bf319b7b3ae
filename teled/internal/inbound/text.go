package inbound

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"arizuko/teled/internal/botapi"
)

// mark is a change to a text, in bytes: what stands between from and to goes, insert comes.
type mark struct {
	from, to int
	insert   string
	blanks   bool // the blanks around go as well
}

// plain writes a text without its formatting, the addresses of links behind their words. Our own
// mentions are left out, and "/command@us" is "/command"; addressed says that there were any. An
// entity that is not within the text is ignored.
func plain(text string, entities []botapi.MessageEntity, me Self) (content string, addressed bool) {
	if len(entities) == 0 {
		return text, false
	}
	offsets := unitOffsets(text)
	var marks []mark
	for i := range entities {
		from, to, ok := span(offsets, entities[i].Offset, entities[i].Length)
		if !ok {
			continue
		}
		m, ours := markOf(&entities[i], text[from:to], from, me)
		addressed = addressed || ours
		if m != (mark{}) {
			marks = append(marks, m)
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.from, b.from) })
	return apply(text, marks), addressed
}

// markOf is what an entity changes in the text, where words stand at from; ours if it means us.
func markOf(e *botapi.MessageEntity, words string, from int, me Self) (m mark, ours bool) {
	to := from + len(words)
	switch e.Type {
	case botapi.EntityMention:
		if name, ok := strings.CutPrefix(words, "@"); ok && me.named(name) {
			return mark{from: from, to: to, blanks: true}, true
		}
	case botapi.EntityTextMention:
		if e.User != nil && e.User.ID == me.ID {
			return mark{from: from, to: to, blanks: true}, true
		}
	case botapi.EntityBotCommand:
		if command, name, ok := strings.Cut(words, "@"); ok && me.named(name) {
			return mark{from: from + len(command), to: to}, true
		}
	case botapi.EntityTextLink:
		if e.URL != "" && e.URL != words {
			return mark{from: to, to: to, insert: " (" + e.URL + ")"}, false
		}
	}
	return mark{}, false
}

func (me Self) named(username string) bool {
	return me.Username != "" && strings.EqualFold(username, me.Username)
}

// apply makes the changes, which are in the order of the text.
func apply(text string, marks []mark) string {
	var out []byte
	done := 0 // what of the text is written, or left out
	for _, m := range marks {
		if m.from > done {
			out = append(out, text[done:m.from]...)
			done = m.from
		}
		out = append(out, m.insert...)
		if m.to <= done {
			continue
		}
		done = m.to
		if m.blanks {
			left := strings.TrimRightFunc(string(out), unicode.IsSpace)
			right := strings.TrimLeftFunc(text[done:], unicode.IsSpace)
			before, after := string(out[len(left):]), text[done:len(text)-len(right)]
			out = append(out[:len(left)], blank(left, before, after, right)...)
			done = len(text) - len(right)
		}
	}
	return string(append(out, text[done:]...))
}

// blank is what remains of the blanks before and after a word that was taken out from between
// left and right: none at the ends of the text, before a comma or behind a bracket.
func blank(left, before, after, right string) string {
	last, _ := utf8.DecodeLastRuneInString(left)
	next, _ := utf8.DecodeRuneInString(right)
	switch {
	case left == "", right == "":
		return ""
	case after == "" && unicode.IsPunct(next), before == "" && unicode.In(last, unicode.Ps, unicode.Pi):
		return ""
	case after == "", strings.Contains(before, "\n"):
		return before
	}
	return after
}

// unitOffsets gives for each UTF-16 unit of a text, and for its end, the byte where it begins; -1
// for the second half of a surrogate pair.
func unitOffsets(text string) []int {
	offsets := make([]int, 0, len(text)+1)
	for i, r := range text {
		offsets = append(offsets, i)
		if utf8.RuneLen(r) == utf8.UTFMax {
			offsets = append(offsets, -1)
		}
	}
	return append(offsets, len(text))
}

// span gives the bytes of a stretch told in UTF-16 units. It is not ok if the stretch is empty, not
// within the text, or cuts a character in two.
func span(offsets []int, offset, length int) (from, to int, ok bool) {
	if offset < 0 || length <= 0 || length >= len(offsets)-offset { // the sum may overflow
		return 0, 0, false
	}
	from, to = offsets[offset], offsets[offset+length]
	return from, to, from >= 0 && to >= 0
}
