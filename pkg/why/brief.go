package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

const (
	// maxBriefSteps and maxBriefOpen bound the text for a chat.
	maxBriefSteps = 9
	maxBriefOpen  = 3
	maxBriefLine  = 300 // characters
)

// Brief tells a path in a few lines of plain text, for a chat: the message, the decisions about it, the ends of its
// turns and its deliveries, and everything that is still open, with times in the zone of now. It has no texts of
// messages.
func Brief(p *Path, now time.Time) string {
	m := p.Asked
	received := time.UnixMilli(m.ReceivedAt).In(now.Location())
	head := fmt.Sprintf("Message %d, %s", m.ID, received.Format("2006-01-02 15:04:05 MST"))
	if m.Direction == msg.In {
		head += ", from " + cmp.Or(m.SenderName, m.Sender, "an unnamed user")
	} else {
		head += ", sent by " + cmp.Or(m.Source, "arizuko")
	}
	lines := []string{head}
	steps := Steps(p)
	var main []Step
	for _, s := range steps {
		if s.Main {
			main = append(main, s)
		}
	}
	if left := len(main) - maxBriefSteps; left > 0 {
		lines = append(lines, fmt.Sprintf("(%d earlier steps left out)", left))
		main = main[left:]
	}
	for _, s := range main {
		at := time.UnixMilli(s.At).In(now.Location())
		lines = append(lines, fmt.Sprintf("%s %s", at.Format("15:04:05.000"), s.Text))
	}
	if took := Took(p, steps); took != 0 {
		lines = append(lines, fmt.Sprintf("Delivered %s after the first step.", took))
	}
	open := StillOpen(p, now)
	for _, o := range open[:min(len(open), maxBriefOpen)] {
		lines = append(lines, "Now: "+o.Text)
	}
	if left := len(open) - maxBriefOpen; left > 0 {
		lines = append(lines, fmt.Sprintf("Now: %d more", left))
	}
	for i, text := range lines {
		lines[i] = shorten(line(text), maxBriefLine)
	}
	return strings.Join(lines, "\n")
}

// shorten cuts a text after some characters.
func shorten(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
