// Package paragraphs makes one answer of the texts that a model has written in a turn.
package paragraphs

import (
	"cmp"
	"slices"
	"strings"

	"arizuko/pkg/agentproto"
)

// Join is all texts as paragraphs, oldest first. If they are too long together, the oldest are left out. Each of them
// is stripped of its hidden parts by itself: a tag that is not closed hides nothing of the next one. If all are hidden,
// the answer is the last one as it is: a silence, but not nothing.
func Join(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	last := strings.TrimSpace(texts[len(texts)-1])
	if len(texts) == 1 {
		return last
	}
	kept, size := texts[:0:0], 0 // newest first
	for _, text := range slices.Backward(texts) {
		text = strings.TrimSpace(agentproto.Strip(text))
		if text == "" {
			continue
		}
		if size += len(text); len(kept) > 0 && size+len(kept)*len(separator) > agentproto.MaxResult {
			break
		}
		kept = append(kept, text)
	}
	slices.Reverse(kept)
	return cmp.Or(strings.Join(kept, separator), last)
}

// separator is between two texts: they are paragraphs of one message.
const separator = "\n\n"
