package main

import (
	"cmp"
	"encoding/json"
	"strings"

	"arizuko/pkg/agentproto"
)

// said are the texts that the model has written in a turn, oldest first. The CLI's result is only the last
// of them: what comes before a tool call is missing there.
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

// answer joins the texts with a result, which replaces those of the last message. If all are too long
// together, the oldest are left out. Each text is stripped of its hidden parts by itself: a tag that is
// not closed hides nothing of the next one. If all are hidden, the answer is the result as it is.
func (s said) answer(result string) string {
	pieces := s
	if n := len(pieces); n > 0 && result != "" && strings.Contains(result, strings.TrimSpace(pieces[n-1].text)) {
		last := pieces[n-1].message
		for n > 0 && pieces[n-1].message == last {
			n--
		}
		pieces = pieces[:n]
	}
	joined := agentproto.Strip(result)
	for i := len(pieces) - 1; i >= 0; i-- {
		piece := agentproto.Strip(pieces[i].text)
		switch {
		case piece == "":
		case joined == "":
			joined = piece
		case len(piece)+len(separator)+len(joined) > agentproto.MaxResult:
			return joined
		default:
			joined = piece + separator + joined
		}
	}
	return cmp.Or(joined, result)
}

// separator is between two texts: they are paragraphs of one message.
const separator = "\n\n"
