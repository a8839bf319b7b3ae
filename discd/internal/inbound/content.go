package inbound

import (
	"strings"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
)

// bodyOf makes the content of a message: what it forwards, its text, then what else it has.
func bodyOf(m *discordapi.Message, p *place, me Self, known *Guilds) adapter.Body {
	words, addressed := plain(m, m.Content, p, me, known)
	lines := describe(m)
	if words != "" {
		lines = append([]string{words}, lines...)
	}
	for i := range m.Snapshots {
		if f := m.Snapshots[i].Message; f != nil {
			forwarded, _ := plain(f, f.Content, p, Self{}, known)
			lines = append(lines, "forwarded:")
			if forwarded != "" {
				lines = append(lines, forwarded)
			}
			lines = append(lines, describe(f)...)
		}
	}
	if len(lines) == 0 && !hasFile(m) && !addressed {
		lines = append(lines, plaintext.Bracket("unsupported message"))
	}
	return adapter.Body{Content: strings.Join(lines, "\n"), Addressed: addressed}
}

// describe returns a line for each thing a message has besides text and files.
func describe(m *discordapi.Message) (lines []string) {
	for _, s := range m.Stickers {
		lines = append(lines, plaintext.Bracket("sticker", s.Name))
	}
	for _, e := range m.Embeds {
		if text := embed(e); text != "" {
			lines = append(lines, text)
		}
	}
	if m.Poll != nil {
		lines = append(lines, plaintext.Bracket("poll", m.Poll.Question.Text))
		for _, a := range m.Poll.Answers {
			lines = append(lines, "- "+plaintext.Line(a.Media.Text))
		}
	}
	return lines
}

// embed is "title — description (url)", without the parts that are empty.
func embed(e discordapi.Embed) string {
	text := plaintext.Line(e.Title)
	if e.Description != "" {
		if text != "" {
			text += " — "
		}
		text += e.Description
	}
	switch {
	case e.URL == "":
		return text
	case text == "":
		return e.URL
	}
	return text + " (" + e.URL + ")"
}
