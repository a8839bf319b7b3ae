package msg

import "strings"

// ChatKind is what sort of place a chat is.
type ChatKind string

// Kinds of chats.
const (
	ChatDM       ChatKind = "dm"
	ChatGroup    ChatKind = "group"
	ChatChannel  ChatKind = "channel"
	ChatWeb      ChatKind = "web"
	ChatInternal ChatKind = "internal"
)

// Platforms whose rooms name a group's folder.
const (
	PlatformWeb   = "web"
	PlatformGroup = "group"
)

// WebOperator is the sender of messages in the web chat: every user who can log
// in there is an operator.
const WebOperator = "web:operator"

// IsOperator reports whether the sender of a row of a chat is an operator: one of those that the
// instance names, or a user of the web chat. A display name makes none.
func IsOperator(operators map[string]bool, chatJID, sender string) bool {
	platform, _ := SplitJID(chatJID)
	return operators[sender] || platform == PlatformWeb && sender == WebOperator
}

// SplitJID cuts a chat address at its first colon:
// "telegram:-1001234" is platform "telegram", room "-1001234".
func SplitJID(jid string) (platform, room string) {
	platform, room, _ = strings.Cut(jid, ":")
	return platform, room
}

// GroupJID is the address by which agents reach a group.
func GroupJID(folder string) string { return PlatformGroup + ":" + folder }

// AddressedFolder is the folder that a web: or group: address names, "" for
// the addresses of other platforms.
func AddressedFolder(jid string) string {
	platform, room := SplitJID(jid)
	if platform == PlatformWeb || platform == PlatformGroup {
		return room
	}
	return ""
}

// KindOfJID guesses a chat's kind from its address, for chats that no adapter
// has stored yet.
func KindOfJID(jid string) ChatKind {
	platform, room := SplitJID(jid)
	platform, _, _ = strings.Cut(platform, "+") // the name of a further account
	switch {
	case platform == PlatformWeb:
		return ChatWeb
	case platform == PlatformGroup:
		return ChatInternal
	case platform == "telegram" && room != "" && !strings.HasPrefix(room, "-"),
		platform == "discord" && strings.HasPrefix(room, "dm-"),
		platform == "slack" && strings.HasPrefix(room, "D"):
		return ChatDM
	}
	return ChatGroup
}

// DaemonOf names the daemon that delivers a chat's outbound rows, "" for none:
// rows of an internal chat are delivered once they are written, and other
// platforms are served by foreign adapters, which poll.
func DaemonOf(jid string) string {
	platform, _ := SplitJID(jid)
	switch platform {
	case "telegram":
		return "teled"
	case "discord":
		return "discd"
	case "slack":
		return "slakd"
	case PlatformWeb:
		return "dashd"
	}
	return ""
}
