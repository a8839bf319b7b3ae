package msg

import (
	"strconv"
	"strings"
)

// In private chats and basic groups of Telegram each bot counts the messages for itself: message 7 of a chat is another
// one for another bot, and so is the topic that it began. The first bot that an account ran as stores such ids as they
// are; those of every other bot begin with its mark, as in "b900002.7". All other ids belong to their chat, or to the
// platform.

// lastSupergroup is the highest id of Telegram's supergroups and channels, which have ids of their own.
const lastSupergroup = -1_000_000_000_000

// IDsOfBot reports whether the ids of a chat's messages are those of one bot.
func IDsOfBot(chatJID string) bool {
	if FamilyOf(chatJID) != "telegram" {
		return false
	}
	_, room := SplitJID(chatJID)
	id, err := strconv.ParseInt(room, 10, 64)
	return err == nil && id > lastSupergroup
}

// BotMark begins the ids of a bot's messages, given the first bot of its account: "" for that one itself.
func BotMark(first, bot string) string {
	if bot == first {
		return ""
	}
	return "b" + bot + "."
}

// CutBotMark cuts a platform id into the mark of its bot, "" for the first one, and the rest.
func CutBotMark(platformID string) (mark, rest string) {
	bot, rest, found := strings.Cut(platformID, ".")
	bot, marked := strings.CutPrefix(bot, "b")
	if _, err := strconv.ParseUint(bot, 10, 63); !found || !marked || err != nil {
		return "", platformID
	}
	return "b" + bot + ".", rest
}
