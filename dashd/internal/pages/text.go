package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/facts"
	"arizuko/pkg/msg"
)

// Limits of texts on pages, in characters.
const (
	maxExcerpt = 120  // of a text in a list
	maxText    = 2000 // of a message among others
	maxWhole   = 4000 // of a message on its own page
	maxSample  = 300  // of the message that asked for a connection
)

// Excerpt returns the beginning of a text, on one line.
func Excerpt(text string) string {
	text = strings.TrimSpace(text)
	start := strings.ToValidUTF8(text[:min(len(text), 4*(maxExcerpt+1))], "") // no character has more than 4 bytes
	line := []rune(strings.Join(strings.Fields(start), " "))
	if len(line) > maxExcerpt {
		return string(line[:maxExcerpt]) + "…"
	}
	return string(line)
}

// Line returns the beginning of a foreign text, on one line without characters that steer a screen.
func Line(text string) string { return Excerpt(plaintext.Line(text)) }

// Cut cuts a text after a number of characters.
func Cut(text string, most int) string {
	runes := []rune(Printable(text[:min(len(text), 4*(most+1))]))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// Printable returns a text of several lines without characters that steer a screen.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r <= '~' || r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// Hide replaces secrets in a text.
func (p *Pages) Hide(text string) string {
	if p.Redact == nil {
		return text
	}
	return p.Redact(text)
}

// hidden is a form of texts in which secrets are replaced first, so that none is cut in half.
func (p *Pages) hidden(form func(string) string) func(string) string {
	return func(text string) string { return form(p.Hide(text)) }
}

// Whole is the text of a message with its lines, up to a limit.
func (p *Pages) Whole(content string) string {
	runes, end := []rune(content[:min(len(content), 4*(maxWhole+1))]), ""
	if len(runes) > maxWhole {
		runes, end = runes[:maxWhole], "…"
	}
	lines := strings.Split(string(runes), "\n")
	for i, line := range lines {
		lines[i] = plaintext.Line(line)
	}
	return p.Hide(strings.TrimSpace(strings.Join(lines, "\n"))) + end
}

// Titles are the titles of chats, by address, as users wrote them.
type Titles map[string]string

// Of returns the title of a chat on one line, "" if it has none.
func (t Titles) Of(jid string) string { return Line(t[jid]) }

// Name returns the title of a chat, else its address.
func (t Titles) Name(jid string) string { return cmp.Or(t.Of(jid), Line(jid)) }

// Apart is what tells a chat apart from others of its platform with the same title, "" if there is none.
func (t Titles) Apart(jid string) string {
	for other, title := range t {
		if other != jid && title != "" && title == t[jid] && msg.FamilyOf(other) == msg.FamilyOf(jid) {
			_, room := msg.SplitJID(jid)
			return Line(room)
		}
	}
	return ""
}

// ago words how long before now a moment was, both in unix ms. assets/time.js words it the same way
// when it updates a page.
func ago(now, at int64) string {
	switch passed := time.Duration(now-at) * time.Millisecond; {
	case passed < time.Minute:
		return "just now"
	case passed < time.Hour:
		return fmt.Sprintf("%d min ago", passed/time.Minute)
	case passed < 24*time.Hour:
		return fmt.Sprintf("%d h ago", passed/time.Hour)
	case passed < 7*24*time.Hour:
		return fmt.Sprintf("%d d ago", passed/(24*time.Hour))
	}
	return time.UnixMilli(at).UTC().Format(time.DateOnly)
}

// when returns a moment as a <time> that the page's script updates.
func when(now, at int64) template.HTML {
	t := time.UnixMilli(at).UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.Format(time.RFC3339),
		t.Format("2006-01-02 15:04:05 MST"), ago(now, at)))
}

// duration words a time in ms. It is never negative: a clock that was set back makes it so.
func duration(ms int64) string {
	switch ms = max(ms, 0); {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	}
	return facts.Span(ms)
}

// ahead words how long after now a moment is, both in unix ms. assets/time.js words it the same way.
func ahead(now, at int64) string {
	switch left := time.Duration(at-now) * time.Millisecond; {
	case left <= 0:
		return "now"
	case left < time.Minute:
		return "in less than a minute"
	case left < 2*time.Hour:
		return fmt.Sprintf("in %d min", left/time.Minute)
	case left < 48*time.Hour:
		return fmt.Sprintf("in %d h", left/time.Hour)
	default:
		return fmt.Sprintf("in %d d", left/(24*time.Hour))
	}
}

// until returns a moment to come as a <time> that the page's script updates.
func until(now, at int64) template.HTML {
	machine := time.UnixMilli(at).UTC().Format(time.RFC3339)
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-until>%s</time>`, machine, ahead(now, at)))
}

// left words how long it is until a moment, both in unix ms.
func left(now, until int64) string {
	if until-now < time.Minute.Milliseconds() {
		return "less than a minute"
	}
	return duration((until - now) / 60_000 * 60_000)
}
