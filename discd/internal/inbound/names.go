package inbound

import (
	"cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
)

// actor is a user as the sender of an event; m is nil in private.
func (me Self) actor(u *discordapi.User, m *discordapi.Member) adapter.Actor {
	return adapter.Actor{JID: me.jid(u.ID), Name: userName(u, m), Bot: u.Bot}
}

// userName is a user's name in a guild, their display name, or that of the account.
func userName(u *discordapi.User, m *discordapi.Member) string {
	nick := ""
	if m != nil {
		nick = m.Nick
	}
	return cmp.Or(plaintext.Line(nick), plaintext.Line(u.GlobalName), plaintext.Line(u.Username), "user "+u.ID)
}
