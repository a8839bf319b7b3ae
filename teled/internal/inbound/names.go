package inbound

import (
	"cmp"

	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// party is the actor of an event: a user, or a chat that acts as itself.
type party struct {
	jid, name string
	bot       bool
}

// anonymousAdmin is the user that Telegram names when an administrator acts anonymously and the update
// has no field for a chat.
const anonymousAdmin = 1087968824

func userParty(u *telegramapi.User) party { return party{jid(u.ID), userName(u), u.IsBot} }

// chatParty is a chat that acts as itself: a channel, or a group's anonymous administrators.
func chatParty(c *telegramapi.Chat) party { return party{jid: jid(c.ID), name: chatName(c)} }

func userName(u *telegramapi.User) string {
	return cmp.Or(plaintext.Line(u.FirstName+" "+u.LastName), handle(u.Username), "user "+decimal(u.ID))
}

func chatName(c *telegramapi.Chat) string {
	return cmp.Or(plaintext.Line(c.Title), plaintext.Line(c.FirstName+" "+c.LastName), handle(c.Username))
}

func handle(username string) string {
	if username == "" {
		return ""
	}
	return "@" + username
}
