package inbound

import (
	"cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// anonymousAdmin is the user that Telegram names when an administrator acts anonymously and the update
// has no field for a chat.
const anonymousAdmin = 1087968824

func (me Self) userActor(u *telegramapi.User) adapter.Actor {
	return adapter.Actor{JID: me.jid(u.ID), Name: userName(u), Bot: u.IsBot}
}

// chatActor is a chat that acts as itself: a channel, or a group's anonymous administrators.
func (me Self) chatActor(c *telegramapi.Chat) adapter.Actor {
	return adapter.Actor{JID: me.jid(c.ID), Name: chatName(c)}
}

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
