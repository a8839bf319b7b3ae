package render_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"arizuko/pkg/render"
)

// check renders a text for every platform and returns the first problem.
func check(text string, limit int) error {
	for _, p := range render.Telegram(text, limit) {
		if err := errors.Join(checkPart(p.Text, units(p.Text), limit), checkEntities(p), checkTelegram(p)); err != nil {
			return fmt.Errorf("telegram %q %v: %w", p.Text, p.Entities, err)
		}
	}
	for _, p := range render.Plain(text, limit) {
		if err := checkPart(p, units(p), limit); err != nil {
			return fmt.Errorf("plain %q: %w", p, err)
		}
	}
	for _, p := range render.Slack(text, limit) {
		if err := errors.Join(checkPart(p, utf8.RuneCountInString(p), limit), checkSlack(p)); err != nil {
			return fmt.Errorf("slack %q: %w", p, err)
		}
	}
	for _, p := range render.Discord(text, limit) {
		if err := errors.Join(checkPart(p, utf8.RuneCountInString(p), limit), checkDiscord(p)); err != nil {
			return fmt.Errorf("discord %q: %w", p, err)
		}
	}
	return nil
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func checkPart(text string, size, limit int) error {
	switch {
	case size > limit:
		return fmt.Errorf("%d of %d", size, limit)
	case strings.TrimSpace(text) == "":
		return errors.New("empty")
	case !utf8.ValidString(text):
		return errors.New("no UTF-8")
	case strings.ContainsAny(text, "\r\x00\x1b"):
		return errors.New("control characters")
	}
	return nil
}

// checkEntities checks entities by the rules of the Bot API, and of its server for code in quotes.
func checkEntities(p render.Formatted) error {
	text := utf16.Encode([]rune(p.Text))
	if raw, err := json.Marshal(p.Entities); len(p.Entities) > 100 || len(raw) > 9000 || err != nil {
		return fmt.Errorf("%d entities of %d bytes", len(p.Entities), len(raw))
	}
	var open []render.Entity
	last := render.Entity{Length: len(text)}
	for _, e := range p.Entities {
		end := e.Offset + e.Length
		if e.Offset < 0 || e.Length <= 0 || end > len(text) {
			return fmt.Errorf("%v out of bounds", e)
		}
		if isLow(text, e.Offset) || isLow(text, end) {
			return fmt.Errorf("%v in a surrogate pair", e)
		}
		if e.Offset < last.Offset || e.Offset == last.Offset && e.Length > last.Length {
			return fmt.Errorf("%v out of order", e)
		}
		last = e
		for len(open) > 0 && open[len(open)-1].Offset+open[len(open)-1].Length <= e.Offset {
			open = open[:len(open)-1]
		}
		for _, o := range open {
			if err := mayContain(o, e); err != nil {
				return err
			}
		}
		open = append(open, e)
	}
	return nil
}

func isLow(text []uint16, i int) bool { return i < len(text) && text[i] >= 0xdc00 && text[i] < 0xe000 }

func mayContain(outer, inner render.Entity) error {
	isCode := func(e render.Entity) bool { return e.Type == "code" || e.Type == "pre" }
	switch {
	case inner.Offset+inner.Length > outer.Offset+outer.Length,
		inner.Type == outer.Type,
		inner.Type == "blockquote",
		isCode(outer),
		isCode(inner) && outer.Type != "blockquote":
		return fmt.Errorf("%v in %v", inner, outer)
	}
	return nil
}

var (
	slackLink   = regexp.MustCompile(`(?i)^<(https?://|mailto:)[^|<>]+\|[^<>]+>`)
	slackEntity = regexp.MustCompile(`^&(amp|lt|gt);`)
	mention     = regexp.MustCompile(`(?i)@(everyone|here)|<@[!&]?[0-9]`)
	otherScheme = regexp.MustCompile(`(\\|[0-9A-Za-z+.-]*)://`)
)

var (
	telegramMention = regexp.MustCompile(`@[0-9A-Za-z_]+`)
	telegramApp     = regexp.MustCompile(`(?i)(?:tg|ton|tonsite)://`)
	webAddress      = regexp.MustCompile(`(?i)^https?://`)
)

// checkTelegram looks for mentions as Telegram does: beside code and links, and not behind a letter.
// It allows links to web pages alone.
func checkTelegram(p render.Formatted) error {
	for _, e := range p.Entities {
		if (e.Type == "text_link") != (e.URL != "") || e.URL != "" && !webAddress.MatchString(e.URL) {
			return fmt.Errorf("link %v", e)
		}
	}
	for _, m := range telegramMention.FindAllStringIndex(p.Text, -1) {
		before, _ := utf8.DecodeLastRuneInString(p.Text[:m[0]])
		if before != '_' && !unicode.IsLetter(before) && !unicode.IsNumber(before) && !covers(p, m) {
			return fmt.Errorf("mention %q", p.Text[m[0]:m[1]])
		}
	}
	for _, m := range telegramApp.FindAllStringIndex(p.Text, -1) {
		if !covers(p, m) && !inWebAddress(p.Text, m[0]) {
			return fmt.Errorf("link %q", p.Text[m[0]:])
		}
	}
	return nil
}

// inWebAddress reports whether a byte of a text could be a part of a web page's address.
func inWebAddress(text string, at int) bool {
	begin := strings.LastIndexAny(text[:at], " \n\t") + 1
	return strings.Contains(strings.ToLower(text[begin:at]), "http")
}

// covers reports whether code or a link has a part of the text between two byte offsets.
func covers(p render.Formatted, bytes []int) bool {
	from, to := units(p.Text[:bytes[0]]), units(p.Text[:bytes[1]])
	for _, e := range p.Entities {
		switch e.Type {
		case "code", "pre", "text_link":
			if e.Offset < to && from < e.Offset+e.Length {
				return true
			}
		}
	}
	return false
}

// checkSlack allows no special sequences but links.
func checkSlack(p string) error {
	if strings.Count(p, "```")%2 != 0 {
		return errors.New("fence left open")
	}
	for i, c := range p {
		switch {
		case c == '<' && !slackLink.MatchString(p[i:]), c == '&' && !slackEntity.MatchString(p[i:]):
			return fmt.Errorf("special: %q", p[i:])
		}
	}
	return nil
}

func checkDiscord(p string) error {
	if strings.Count(p, "```")%2 != 0 {
		return errors.New("fence left open")
	}
	if m := mention.FindString(p); m != "" {
		return fmt.Errorf("mention %q", m)
	}
	if !strings.Contains(p, "`") {
		for _, m := range otherScheme.FindAllStringSubmatchIndex(p, -1) {
			if name := strings.ToLower(p[m[2]:m[3]]); name != `\` && !inWebAddress(p, m[3]) {
				return fmt.Errorf("address %q", p[m[0]:])
			}
		}
	}
	return nil
}

func covered(p render.Formatted, e render.Entity) string {
	return string(utf16.Decode(utf16.Encode([]rune(p.Text))[e.Offset : e.Offset+e.Length]))
}
