package inbound

import (
	"cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter/plaintext"
)

// sender is who does something in a chat.
type sender struct {
	jid, name string
	bot       bool
}

// party is a user as a sender; m is nil in private.
func party(u *discordapi.User, m *discordapi.Member) sender {
	return sender{jid(u.ID), userName(u, m), u.Bot}
}

// userName is what a user is called where they speak: by their name in the guild, the name they
// chose, or their account's.
func userName(u *discordapi.User, m *discordapi.Member) string {
	nick := ""
	if m != nil {
		nick = m.Nick
	}
	return cmp.Or(plaintext.Line(nick), plaintext.Line(u.GlobalName), plaintext.Line(u.Username), "user "+u.ID)
}
