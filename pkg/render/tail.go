package render

import "slices"

// tailMark begins a text whose beginning is left out.
const tailMark = "…\n"

// TelegramTail renders the end of a text, at least half of what fits into one message; all of it if that fits. The
// limit is in UTF-16 units. The result is empty if nothing of the text is visible.
func TelegramTail(markdown string, limit int) Formatted {
	if all := Telegram(markdown, limit); len(all) == 0 {
		return Formatted{}
	} else if len(all) == 1 {
		return all[0]
	}
	parts := lastTwo(Telegram(markdown, (limit-len(tailMark)-1)/2))
	out := Formatted{Text: tailMark}
	for i, part := range parts {
		if i > 0 {
			out.Text += "\n"
		}
		at := UTF16Len(out.Text)
		for _, e := range part.Entities {
			e.Offset += at
			out.Entities = append(out.Entities, e)
		}
		out.Text += part.Text
	}
	return out
}

// DiscordTail is TelegramTail for Discord. The limit is in characters.
func DiscordTail(markdown string, limit int) string {
	return tail(markdown, limit, Discord)
}

// SlackTail is TelegramTail for Slack. The limit is in characters.
func SlackTail(markdown string, limit int) string {
	return tail(markdown, limit, Slack)
}

func tail(markdown string, limit int, render func(string, int) []string) string {
	if all := render(markdown, limit); len(all) == 0 {
		return ""
	} else if len(all) == 1 {
		return all[0]
	}
	out := tailMark
	for i, part := range lastTwo(render(markdown, (limit-len(tailMark)-1)/2)) {
		if i > 0 {
			out += "\n"
		}
		out += part
	}
	return out
}

func lastTwo[T any](parts []T) []T { return slices.Clone(parts[max(0, len(parts)-2):]) }
