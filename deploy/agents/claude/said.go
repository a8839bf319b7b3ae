package main

import (
	"encoding/json"
	"strings"

	"arizuko/deploy/agents/internal/paragraphs"
)

// said are the texts that the model has written in a turn, oldest first. The CLI's result is only the last
// of them: those before a tool call are missing there.
type said []text

// text is one text block of a message of the model.
type text struct {
	message string // its id
	text    string
}

// add adds the texts of an assistant line, unless a subagent wrote them or they report a failure.
func (s *said) add(l line) {
	if l.Error != "" || l.ParentToolUse != "" {
		return
	}
	var m struct {
		ID      string `json:"id"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(l.Message, &m) != nil {
		return // of another form in a later version; the result has the last text
	}
	for _, block := range m.Content {
		if block.Type == "text" && strings.TrimSpace(block.Text) != "" {
			*s = append(*s, text{m.ID, block.Text})
		}
	}
}

// answer joins the texts with a result, which replaces those of the last message.
func (s said) answer(result string) string {
	pieces := s
	if n := len(pieces); n > 0 && result != "" && strings.Contains(result, strings.TrimSpace(pieces[n-1].text)) {
		last := pieces[n-1].message
		for n > 0 && pieces[n-1].message == last {
			n--
		}
		pieces = pieces[:n]
	}
	var texts []string
	for _, piece := range pieces {
		texts = append(texts, piece.text)
	}
	if result != "" {
		texts = append(texts, result)
	}
	return paragraphs.Join(texts)
}
