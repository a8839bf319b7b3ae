package why

import (
	"cmp"
	"fmt"
	"strings"

	"arizuko/pkg/msg"
)

// unrouted says what an operator can do about a row that no route has taken.
func unrouted(m *msg.Message) string {
	return fmt.Sprintf("row %d went nowhere. To connect its chat to a group: `%s`; to see which routes fit the row: `routd routes test --chat %s --verb %s --sender %s`",
		m.ID, ConnectCommand(m.ChatJID), word(m.ChatJID, "CHAT"), word(cmp.Or(m.Verb, msg.VerbMessage), "VERB"), word(m.Sender, "SENDER"))
}

// ConnectCommand is the command that connects a chat to a group.
func ConnectCommand(jid string) string {
	return fmt.Sprintf("routd routes add --match 'chat_jid=%s' --target GROUP", word(jid, "CHAT"))
}

// word is a value that stands in a command, or in a route's match, for itself; instead of any other one a placeholder is printed:
// operators copy commands, and addresses and ids come from platforms.
func word(value, placeholder string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(":+-_./@", r)
	}
	if value == "" || value[0] == '-' || strings.ContainsFunc(value, func(r rune) bool { return !plain(r) }) {
		return placeholder
	}
	return value
}
