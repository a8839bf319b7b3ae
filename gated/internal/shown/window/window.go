package window

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Input has the parts of a window.
type Input struct {
	Rows      []Row
	Except    map[int64]bool // rows that are shown elsewhere, by id
	You       string         // sender of the message that triggered the turn
	Assistant string         // name of the assistant
	// other names that no user has here: those of the group, and further ones of the assistant
	Reserved []string
}

// Text writes the window, "" if there is nothing to show: a header, then each thread
// with its speakers and messages, the newest thread first. No name and no text can
// pose as a header or as another speaker.
func Text(in Input) string {
	forest := buildThreadForest(in.Rows, in.Except)
	if len(forest) == 0 {
		return ""
	}
	names := newNames(&in)
	var b strings.Builder
	b.WriteString(title + "\n")
	for _, t := range forest {
		word := wordThread
		if t.alone {
			word = wordAlone
		}
		fmt.Fprintf(&b, "\n%s (%s):\n", word, strings.Join(names.of(t.rows), ", "))
		for i := range t.rows {
			writeText(&b, names, &t.rows[i], t.alone)
		}
	}
	return b.String()
}

// writeText writes a message, with further lines indented deeper than speakers are. One that stands alone has
// its speaker in the header, and before the text only if that has the form of a speaker's line itself.
func writeText(b *strings.Builder, names *names, row *Row, alone bool) {
	all := lines(Cut(row.Text, maxText, row.More))
	indent := "  "
	if row.Quoted {
		indent += quoted + " " // no name has brackets
	}
	if !alone || names.looksSpoken(all[0]) {
		indent += names.name(row) + ": "
	}
	for _, line := range all {
		b.WriteString(indent + line + "\n")
		indent = "    "
	}
}

const (
	title      = "[recent channel context]"
	wordThread = "thread"
	wordAlone  = "standalone"
	// quoted marks posts that came along with a message.
	quoted = "(quoted)"
)

// lines splits text at everything that a reader may take for a line end, without
// empty lines. There is one line at least.
func lines(text string) []string {
	var all []string
	for line := range strings.FieldsFuncSeq(text, isLineEnd) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return []string{"(empty)"}
	}
	return all
}

func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\v', '\f', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// Cut bounds a text in bytes. A remark says how much is missing, with more bytes that the text already lacks.
func Cut(text string, limit, more int) string {
	if len(text) > limit {
		end := limit
		for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text, more = text[:end], more+len(text)-end
	}
	if more > 0 {
		text = fmt.Sprintf("%s… [%d bytes more]", text, more)
	}
	return text
}
