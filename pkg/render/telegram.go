package render

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// Limits of a message's entities: Telegram drops those after the first 100 without an error, and refuses more than
// about 9 kB of them as JSON.
const (
	maxEntities     = 100
	maxEntitiesSize = 8 << 10
)

// formatAll writes a part, as several if it has too many entities for one.
func formatAll(part []line) []Formatted {
	f := format(part)
	units := UTF16Len(f.Text)
	if units < 2 || entitiesFit(f.Entities, found(part)) {
		return []Formatted{f}
	}
	var out []Formatted
	for _, p := range split(part, (units+1)/2, telegram{}) {
		out = append(out, formatAll(p)...)
	}
	return out
}

// entitiesFit reports whether a message takes entities beside some that Telegram finds itself.
func entitiesFit(entities []Entity, found int) bool {
	raw, err := json.Marshal(entities)
	return err == nil && len(raw) <= maxEntitiesSize && len(entities)+found <= maxEntities
}

// found counts the addresses, hashtags and commands in a text, at most: Telegram makes entities of them.
func found(part []line) (n int) {
	for _, l := range part {
		for _, s := range l.spans {
			if l.fence == nil && bareLink(s) {
				n++
			}
			if l.fence == nil && strings.ContainsAny(s.text, "#/$@") {
				n += len(autoEntity.FindAllString(s.text, -1))
			}
		}
	}
	return n
}

var autoEntity = regexp.MustCompile(`(?:^|[\s(])[#/$]\w|\w@\w`)

// telegram measures lines as format writes them.
type telegram struct{}

func (telegram) size(text string) int { return UTF16Len(text) }

func (telegram) next(prev, l *line) string {
	var b strings.Builder
	if prev != nil {
		b.WriteByte('\n')
	}
	b.WriteString(indent(l, "•"))
	for _, text := range telegramTexts(l) {
		b.WriteString(text)
	}
	return b.String()
}

func (telegram) end(*line) string { return "" }

// format writes a part with its entities.
func format(part []line) Formatted {
	var f formatter
	for i := range part {
		f.line(&part[i])
	}
	f.closeSpans(0)
	f.fence.closeAt(f.offset, f.entities)
	f.quote.closeAt(f.offset, f.entities)
	out := Formatted{Text: f.text.String()}
	for _, e := range f.entities {
		if e.Length > 0 {
			out.Entities = append(out.Entities, e)
		}
	}
	return out
}

type formatter struct {
	text     strings.Builder
	offset   int // where the text ends, in UTF-16 units
	entities []Entity
	prev     *line
	quote    opened
	fence    opened
	marks    []mark
	spans    []opened // one for each of marks
}

// opened is the index of an entity without a length yet, plus one; 0 if there is none.
type opened int

func (o *opened) closeAt(offset int, entities []Entity) {
	if *o > 0 {
		e := &entities[*o-1]
		e.Length = offset - e.Offset
	}
	*o = 0
}

func (f *formatter) open(e Entity) opened {
	e.Offset = f.offset
	f.entities = append(f.entities, e)
	return opened(len(f.entities))
}

func (f *formatter) write(s string) {
	f.text.WriteString(s)
	f.offset += UTF16Len(s)
}

func (f *formatter) line(l *line) {
	newQuote := f.prev == nil || f.prev.quote != l.quote
	newFence := newQuote || f.prev.fence != l.fence
	if f.prev != nil {
		f.closeSpans(0)
		if newFence {
			f.fence.closeAt(f.offset, f.entities)
		}
		if newQuote {
			f.quote.closeAt(f.offset, f.entities)
		}
		f.write("\n")
	}
	if newQuote && l.quote != 0 {
		f.quote = f.open(Entity{Type: "blockquote"})
	}
	if newFence && l.fence != nil {
		f.fence = f.open(Entity{Type: "pre", Language: l.fence.language})
	}
	f.write(indent(l, "•"))
	for i, text := range telegramTexts(l) {
		f.span(l.spans[i], text)
	}
	f.prev = l
}

func (f *formatter) span(s span, text string) {
	marks := telegramMarks(s)
	n := common(f.marks, marks)
	f.closeSpans(n)
	for _, m := range marks[n:] {
		f.marks = append(f.marks, m)
		f.spans = append(f.spans, f.open(Entity{Type: telegramTypes[m.kind], URL: m.url}))
	}
	f.write(text)
}

func (f *formatter) closeSpans(keep int) {
	for i := len(f.spans) - 1; i >= keep; i-- {
		f.spans[i].closeAt(f.offset, f.entities)
	}
	f.marks, f.spans = f.marks[:keep], f.spans[:keep]
}

var telegramTypes = [...]string{
	bold: "bold", heading: "bold", italic: "italic", strike: "strikethrough", spoiler: "spoiler", link: "text_link",
	code: "code",
}

// telegramMarks leaves out marks that Telegram does not show: code can only be part of a quote. Within a
// link or a spoiler the code is left out, else the other marks are. Telegram finds bare addresses by
// itself, but would find a mention in some of them first.
func telegramMarks(s span) []mark {
	var out []mark
	alone := has(s.marks, code) && !has(s.marks, spoiler) && !has(s.marks, link)
	for _, m := range s.marks {
		if m.kind == code == alone && (!m.bare || strings.Contains(s.text, "@")) {
			m.bare = false
			out = append(out, m)
		}
	}
	return out
}

var telegramHost = regexp.MustCompile(`^[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)+\.?$`)

// telegramLink keeps the addresses of web pages that the Bot API accepts in a link; it refuses a
// whole message for one on a host without a dot. It takes mail addresses for hosts: they are shown
// as text, which Telegram links by itself. A link to tg://user would be a mention.
func telegramLink(address, _ string) bool {
	u, err := url.Parse(address)
	return err == nil && u.User == nil && pageLink(address) && telegramHost.MatchString(u.Hostname())
}
