package agentproto

import "strings"

// hiddenTags enclose an agent's notes to itself.
var hiddenTags = [...]string{"internal", "think"}

// Strip removes <internal>…</internal> and <think>…</think> from an agent's
// text, then blank lines around the rest. Tags match in any case and may be nested;
// one that is never closed hides everything to the end. The result has no opening
// tag, not even one that a removal puts together. The time is linear in the length
// of text.
func Strip(text string) string {
	return trimBlankLines(stripHidden(text))
}

// StripGrowing is Strip of a text whose end is still to come: an end with which an opening tag may begin is left out.
func StripGrowing(text string) string {
	visible := stripHidden(text)
	if i := strings.LastIndexByte(visible, '<'); i >= 0 {
		for _, tag := range hiddenTags {
			if n := len(visible) - i; n <= len("<")+len(tag) && strings.EqualFold(visible[i:], ("<" + tag)[:n]) {
				return trimBlankLines(visible[:i])
			}
		}
	}
	return trimBlankLines(visible)
}

func stripHidden(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	var visible []byte
	for text != "" {
		end := strings.IndexByte(text, '>') + 1
		if end == 0 {
			end = len(text)
		}
		visible = append(visible, text[:end]...)
		text = text[end:]
		// A tag is looked for at the end of what would be shown, not in the
		// input: "<thi<think></think>nk>" must not leave "<think>".
		if tag := openingSuffix(visible); tag != "" {
			visible = visible[:len(visible)-len("<>")-len(tag)]
			text = skipHidden(text, tag)
		}
	}
	return string(visible)
}

func openingSuffix(visible []byte) string {
	for _, tag := range hiddenTags {
		if n := len(tag) + len("<>"); len(visible) >= n && isTag(string(visible[len(visible)-n:]), "<", tag) {
			return tag
		}
	}
	return ""
}

// skipHidden returns what follows the close of a tag that was opened before text.
func skipHidden(text, tag string) string {
	depth := 1
	for depth > 0 {
		start := strings.IndexByte(text, '<')
		if start < 0 {
			return ""
		}
		text = text[start:]
		switch {
		case hasTag(text, "</", tag):
			depth--
			text = text[len("</")+len(tag)+len(">"):]
		case hasTag(text, "<", tag):
			depth++
			text = text[len("<")+len(tag)+len(">"):]
		default:
			text = text[1:]
		}
	}
	return text
}

func hasTag(text, opening, tag string) bool {
	n := len(opening) + len(tag) + len(">")
	return len(text) >= n && isTag(text[:n], opening, tag)
}

// isTag takes s of exactly the tag's length, so that case folding cannot match a
// longer rune, such as the Kelvin sign, with an ASCII letter.
func isTag(s, opening, tag string) bool {
	return strings.EqualFold(s, opening+tag+">")
}

func trimBlankLines(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found || strings.Trim(line, " \t\r") != "" {
			return text
		}
		text = rest
	}
}
