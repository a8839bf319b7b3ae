package match

import "arizuko/pkg/msg"

// Event is the part of an inbound message that expressions match.
type Event struct {
	Platform   string // "telegram", on all accounts
	Account    string // "work", "" for the first account of the platform
	Room       string // "-1001234"
	ChatJID    string // "telegram:-1001234"
	Sender     string // "telegram:77"
	SenderName string // display name, "" when the platform gave none
	Verb       string // "" is "message"
}

// EventOf splits chatJID at its first colon into platform, with the account, and room.
func EventOf(chatJID, sender, senderName, verb string) Event {
	name, room := msg.SplitJID(chatJID)
	platform, account := msg.SplitAccount(name)
	return Event{
		Platform:   platform,
		Account:    account,
		Room:       room,
		ChatJID:    chatJID,
		Sender:     sender,
		SenderName: senderName,
		Verb:       verb,
	}
}

// key names the property that a pair of an expression matches. The index looks keys up in this order:
// a match by an early key, which few events share, saves trying rows under later ones.
type key int

const (
	chatJID key = iota
	room
	sender
	senderName
	platform
	account
	verb
	numKeys
)

func keyNames() []string {
	return []string{"chat_jid", "room", "sender", "sender_name", "platform", "account", "verb"}
}

func (k key) String() string { return keyNames()[k] }

// value returns ev's value of k.
func (ev *Event) value(k key) string {
	switch k {
	case chatJID:
		return ev.ChatJID
	case room:
		return ev.Room
	case sender:
		return ev.Sender
	case senderName:
		return ev.SenderName
	case platform:
		return ev.Platform
	case account:
		return ev.Account
	default:
		if ev.Verb == "" {
			return "message"
		}
		return ev.Verb
	}
}
