// Package emoji knows the reactions that platforms accept, and Slack's names of emoji.
package emoji

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// selector is the variation selector for emoji presentation, which clients often leave out.
	selector = "\ufe0f"
	// keycap ends emoji such as 1️⃣.
	keycap = '\u20e3'
	// maxLength of an emoji, in bytes: families with skin tones have 41, names on Slack 100.
	maxLength = 100
)

// telegram lists the reactions that bots may use, as documented at ReactionTypeEmoji.
const telegram = `❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 ` +
	`👻 👨‍💻 👀 🎃 🙈 ` +
	`😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡`

// similar lists, for common emoji that Telegram refuses, the reaction that says the same: the last of each line.
const similar = `
✅ ✔ ☑ 🆗 ➕ 💪 👍
❌ ✖ 🚫 ➖ 👎
🙂 😊 😀 😃 😄 😆 😉 😁
😂 🤣
🚀 ✨ 🔥
🥳 🎂 🎉
⏳ ⌛ ⏰ 🔍 🔎 👁 👀
💡 ❓ 🤔
🧡 💛 💚 💙 💜 🖤 🤍 ❤
📝 ✏ ✍
🙌 👏
😮 😲 😱
🤖 👾
👋 🤗
⭐ 🌟 🏅 🏆
😕 🤷
`

// Telegram returns the reaction that Telegram accepts for an emoji: the emoji itself or a similar one, "" if there is
// none. same reports whether it is the emoji itself.
func Telegram(of string) (accepted string, same bool) {
	base := withoutTone(of)
	if slices.Contains(strings.Fields(telegram), base) {
		return base, true
	}
	for line := range strings.Lines(similar) {
		if fields := strings.Fields(line); slices.Contains(fields, base) {
			return fields[len(fields)-1], false
		}
	}
	return "", false
}

// Is reports whether a text looks like one emoji, or a few.
func Is(text string) bool {
	if text == "" || len(text) > maxLength || !utf8.ValidString(text) {
		return false
	}
	shown := false
	for _, r := range text {
		switch {
		case r == keycap, r >= 0x2190 && unicode.IsSymbol(r), r == '©', r == '®', r == '‼', r == '⁉':
			shown = true
		case unicode.IsLetter(r), unicode.IsSpace(r), unicode.IsControl(r):
			return false
		}
	}
	return shown
}

// For returns the form of an emoji that reactions on a platform have: an emoji, a name between colons on Slack,
// "name:id" on Discord. The emoji may be given as a name between colons everywhere. An error lists the choices.
func For(platform, given string) (string, error) {
	given = strings.TrimSpace(given)
	if name, ok := strings.CutPrefix(given, ":"); ok {
		given = FromName(strings.TrimSuffix(name, ":"))
	}
	switch {
	case platform == "telegram":
		if is, _ := Telegram(given); is == "" {
			return "", fmt.Errorf("%.40q cannot be a reaction on Telegram: give one of %s", given, telegram)
		}
	case platform == "slack":
		if name := Name(given); name == "" || len(name) > maxLength || !isName(name) {
			return "", fmt.Errorf("%.40q is not known as a reaction on Slack: give a common emoji, "+
				"or its name on Slack between colons, as in :tada: for a party popper", given)
		}
	case platform == "discord" && len(given) <= maxLength && guildEmoji.MatchString(given):
	case !Is(given):
		return "", fmt.Errorf("%.40q is not an emoji: give one emoji, as in 👍", given)
	}
	return given, nil
}

// isName reports whether a text has the form of an emoji's name on Slack.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLower(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Lo, r) &&
			!strings.ContainsRune("_+'-:", r)
	})
}

// guildEmoji matches "name:id", an emoji of a guild.
var guildEmoji = regexp.MustCompile(`^[0-9A-Za-z_]+:[0-9]+$`)

// OtherSpelling is an emoji with the variation selector if it has none, without it otherwise: some platforms know only
// one of the two.
func OtherSpelling(of string) string {
	if strings.Contains(of, selector) {
		return strings.ReplaceAll(of, selector, "")
	}
	return of + selector
}
