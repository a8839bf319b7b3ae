package briefing

import "arizuko/pkg/msg"

// Platforms whose markdown is known.
const (
	telegram = "telegram"
	discord  = "discord"
	slack    = "slack"
)

// place describes a surface in words.
func place(surface, platform string) string {
	words := map[string]string{
		"slack-channel-thread": "a thread of a Slack channel",
		"slack-channel":        "a Slack channel, at its top level, where most do not follow",
		"slack-dm":             "a direct chat on Slack",
		"slack-pane":           "the assistant pane of Slack",
		"telegram-dm":          "a private chat on Telegram",
		"telegram-group":       "a Telegram group, which all its members read",
		"telegram-topic":       "a topic of a Telegram group",
		"discord-dm":           "a direct chat on Discord",
		"discord-channel":      "a Discord channel, which all its members read",
		"discord-thread":       "a thread on Discord",
		"web":                  "arizuko's web chat",
		"group":                "another group: an agent like you gets it",
	}[surface]
	if words == "" {
		words = "a chat on " + name(platform, "another platform")
	}
	return words
}

// markdown says what a platform shows of markdown, as package render writes it.
func markdown(platform string) string {
	const common = "Write markdown: bold, italic, ~~strikethrough~~, `code`, code blocks, quotes, lists and web links are shown"
	switch platform {
	case telegram:
		return common + ", ||spoilers|| hidden. Headings become bold lines, tables aligned text, pictures links. HTML is text."
	case discord:
		return common + ", ||spoilers|| hidden, and headings of three levels. Tables become aligned text, pictures links. HTML is text."
	case slack:
		return common + ". Headings become bold lines, tables aligned text, pictures links; ||spoilers|| are not hidden. HTML is text."
	case msg.PlatformWeb:
		return common + ", headings and tables. Pictures become links. HTML is text."
	case msg.PlatformGroup:
		return "Markdown stays as you write it."
	}
	return "Write plain text: it is not known which markdown is shown there."
}
