// Package inbound turns Telegram's updates into rows. It is pure: the same update gives the same
// rows, however often it comes.
package inbound

import (
	"errors"
	"fmt"
	"strconv"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// Self is our bot, as getMe tells.
type Self struct {
	ID       int64
	Username string // without the "@"
}

// Convert reads an update. One that means nothing to us gives an empty result; one that lacks what
// every such update has gives an error that says what. Direction, source and receiving time of the
// rows are left to whoever stores them, and so is the timestamp where the update has none. A group
// that becomes a supergroup is Moved, once in each of the two.
//
// The ids of rows, unique in their chat:
//
//	<message>                           a message
//	<message>:e:<date>-<hash>           an edit, of which there may be several in one second
//	<message>:r:<user>:<emoji>:<date>   a reaction; "-" before the emoji of one taken back
//	m:<verb>:<user>:<date>              a join or leave
//
// Telegram may tell of a join or leave twice, by a message in the chat and, to administrators, by
// an update of the member's standing. Both carry the second in which it happened, so they get the
// same id and the later one changes nothing. Of our own bot only the latter kind is read, which
// never fails to come.
func Convert(u *telegramapi.Update, me Self) (adapter.Inbound, error) {
	if u == nil {
		return adapter.Inbound{}, errors.New("no update")
	}
	var r adapter.Inbound
	var err error
	switch {
	case u.Message != nil:
		r, err = message(u.Message, me, false)
	case u.ChannelPost != nil:
		r, err = message(u.ChannelPost, me, false)
	case u.EditedMessage != nil:
		r, err = message(u.EditedMessage, me, true)
	case u.EditedChannelPost != nil:
		r, err = message(u.EditedChannelPost, me, true)
	case u.MessageReaction != nil:
		r, err = reactions(u.MessageReaction, me)
	case u.MyChatMember != nil:
		r, err = standing(u.MyChatMember, me)
	case u.ChatMember != nil:
		r, err = standing(u.ChatMember, me)
	}
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("update %d: %w", u.ID, err)
	}
	return r, nil
}

// of is a result about a chat in which there are no rows yet.
func of(c *telegramapi.Chat) adapter.Inbound {
	kind := msg.KindOfJID(jid(c.ID))
	switch c.Type {
	case telegramapi.Private:
		kind = msg.ChatDM
	case telegramapi.Group, telegramapi.Supergroup:
		kind = msg.ChatGroup
	case telegramapi.Channel:
		kind = msg.ChatChannel
	}
	return adapter.Inbound{
		Chats: []msg.Chat{{JID: jid(c.ID), Kind: kind, Title: chatName(c)}},
	}
}

// jid is the address of a chat, and of a user as a sender.
func jid(id int64) string { return "telegram:" + decimal(id) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// millis turns a date into unix milliseconds. One that is missing or absurd gives 0, for which
// the time of arrival is taken.
func millis(date int64) int64 {
	const year9999 = 253402300800
	if date <= 0 || date > year9999 {
		return 0
	}
	return date * 1000
}
