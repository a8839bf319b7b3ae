package msg

import "strings"

// ChatKind is the kind of a chat.
type ChatKind string

// Kinds of chats.
const (
	ChatDM       ChatKind = "dm"
	ChatGroup    ChatKind = "group"
	ChatChannel  ChatKind = "channel"
	ChatWeb      ChatKind = "web"
	ChatInternal ChatKind = "internal"
)

// Platforms whose rooms name a group's folder. That of a hook is the folder, a dot and the hook's id.
const (
	PlatformWeb   = "web"
	PlatformGroup = "group"
	PlatformHook  = "hook"
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

// JID is the address of a room of a platform, or of a sender there.
func JID(platform, room string) string { return platform + ":" + room }

// SplitJID cuts a chat address at its first colon:
// "telegram:-1001234" is platform "telegram", room "-1001234". The platform of a further account contains its
// name: "telegram+work".
func SplitJID(jid string) (platform, room string) {
	platform, room, _ = strings.Cut(jid, ":")
	return platform, room
}

// accountSign stands before the name of an account.
const accountSign = "+"

// WithAccount is the name of a platform or of its daemon for an account: "telegram" and "work" give
// "telegram+work". The first account has no name.
func WithAccount(name, account string) string {
	if account == "" {
		return name
	}
	return name + accountSign + account
}

// SplitAccount cuts the name of a platform or daemon into the name without an account, and the account:
// "teled+work" into "teled" and "work".
func SplitAccount(name string) (base, account string) {
	base, account, _ = strings.Cut(name, accountSign)
	return base, account
}

// maxAccount is the longest name of an account, in bytes. It is part of the path of a socket, which may have 107.
const maxAccount = 32

// IsAccount reports whether an account may have a name: a-z, 0-9, "_" and "-", beginning with a letter or digit,
// and at most 32 of them.
func IsAccount(name string) bool { return len(name) <= maxAccount && validSegment(name) }

// FamilyOf is the platform of an address without the account: "telegram" for "telegram+work:-5".
func FamilyOf(jid string) string {
	platform, _ := SplitJID(jid)
	family, _ := SplitAccount(platform)
	return family
}

// AccountOf is the account of an address, "" for the first one of its platform.
func AccountOf(jid string) string {
	platform, _ := SplitJID(jid)
	_, account := SplitAccount(platform)
	return account
}

// GroupJID is the address by which agents reach a group.
func GroupJID(folder string) string { return PlatformGroup + ":" + folder }

// HookJID is the address to which a hook of a group delivers, and the sender of what comes there.
func HookJID(folder, id string) string { return PlatformHook + ":" + folder + "." + id }

// AddressedFolder is the folder that a web:, group: or hook: address names, "" for
// the addresses of other platforms.
func AddressedFolder(jid string) string {
	platform, room := SplitJID(jid)
	switch platform {
	case PlatformWeb, PlatformGroup:
		return room
	case PlatformHook:
		return room[:max(strings.LastIndexByte(room, '.'), 0)]
	}
	return ""
}

// NoUsers reports whether no user reads a chat: it is between groups, or of a hook. Nothing is delivered there.
func NoUsers(jid string) bool {
	platform, _ := SplitJID(jid)
	return platform == PlatformGroup || platform == PlatformHook
}

// KindOfJID guesses a chat's kind from its address, for chats that no adapter
// has stored yet. On Telegram "-1001234.77" is the conversation with one subscriber in
// the direct messages of a channel.
func KindOfJID(jid string) ChatKind {
	family := FamilyOf(jid)
	_, room := SplitJID(jid)
	switch {
	case family == PlatformWeb:
		return ChatWeb
	case NoUsers(jid):
		return ChatInternal
	case family == "telegram" && room != "" && (!strings.HasPrefix(room, "-") || strings.Contains(room, ".")),
		family == "discord" && strings.HasPrefix(room, "dm-"),
		family == "slack" && strings.HasPrefix(room, "D"):
		return ChatDM
	}
	return ChatGroup
}

// DaemonOf names the daemon that delivers a chat's outbound rows, "" for none: rows of an internal chat are
// delivered once they are written, and other platforms are served by foreign adapters, which poll. Each account
// has a daemon of its own.
func DaemonOf(jid string) string {
	platform, _ := SplitJID(jid)
	family, account, further := strings.Cut(platform, accountSign)
	if further && !IsAccount(account) {
		return ""
	}
	switch family {
	case "telegram":
		return WithAccount("teled", account)
	case "discord":
		return WithAccount("discd", account)
	case "slack":
		return WithAccount("slakd", account)
	}
	if platform == PlatformWeb {
		return "dashd"
	}
	return ""
}
