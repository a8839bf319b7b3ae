package inbound

import (
	"cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter/plaintext"
)

// sender is the actor of an event.
type sender struct {
	jid, name string
	bot       bool
}

// party is a user as a sender; m is nil in private.
func party(u *discordapi.User, m *discordapi.Member) sender {
	return sender{jid(u.ID), userName(u, m), u.Bot}
}

// userName is a user's name in a guild, their display name, or that of the account.
func userName(u *discordapi.User, m *discordapi.Member) string {
	nick := ""
	if m != nil {
		nick = m.Nick
	}
	return cmp.Or(plaintext.Line(nick), plaintext.Line(u.GlobalName), plaintext.Line(u.Username), "user "+u.ID)
}
