// Package inbound converts Telegram's updates into rows. It is pure: the same update always gives the
// same rows.
package inbound

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// Self is the bot, as getMe describes it.
type Self struct {
	Platform string // the first part of addresses
	ID       int64
	Username string // without the "@"
	ReadsAll bool   // privacy mode is off: it receives all messages of groups
	Mark     string // begins the ids that are the bot's own, see msg.BotMark
}

// Convert converts an update. An update that makes no row gives an empty result; one that lacks a
// required field gives an error that names it. The shell sets direction, source and receiving time of
// the rows, and the timestamp if the update has none. A group that becomes a supergroup is Moved by an
// update in each of the two.
//
// The ids of rows, unique in their chat; where those of messages are each bot's own, all begin with the bot's mark:
//
//	<message>                           a message
//	<message>:e:<date>-<hash>           an edit, of which there may be several in one second
//	<message>:r:<user>:<emoji>:<date>-<update>  a reaction; "-" before the emoji if it was removed. A user
//	                                    may give it, take it back and give it again in one second
//	m:<verb>:<user>:<date>              a join or leave
//	p:<poll>:v:<user>:<update>          a vote, by Ballot
//	p:<poll>:end                        the end of a poll, by Ballot
//	q:<callback query>                  the press of a button of a question
//
// Telegram may report a join or leave twice: by a message in the chat and, to administrators, by an
// update of the member's status. Both contain the second in which it happened, so they get the same id
// and the later one changes nothing. For the bot itself only the second kind is read, since it always
// comes.
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
		r, err = reactions(u.ID, u.MessageReaction, me)
	case u.MyChatMember != nil:
		r, err = standing(u.MyChatMember, me)
	case u.ChatMember != nil:
		r, err = standing(u.ChatMember, me)
	case u.CallbackQuery != nil:
		r, err = press(u.CallbackQuery, me)
	}
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("update %d: %w", u.ID, err)
	}
	me.own(&r)
	return r, nil
}

// own puts the bot's mark before ids of chats where those of messages are each bot's own.
func (me Self) own(r *adapter.Inbound) {
	mark := func(chat string, ids ...*string) {
		for _, id := range ids {
			if *id != "" && msg.IDsOfBot(chat) {
				*id = me.Mark + *id
			}
		}
	}
	for _, m := range slices.Concat(r.Messages, r.Quoted) {
		mark(m.ChatJID, &m.PlatformID, &m.ReplyToID, &m.TargetID, &m.ThreadID, &m.Topic)
	}
	for i := range r.Threads {
		mark(r.Threads[i].ChatJID, &r.Threads[i].ID)
	}
}

// of makes a result about a chat, without rows.
func (me Self) of(c *telegramapi.Chat) adapter.Inbound {
	kind := msg.KindOfJID(me.jid(c.ID))
	switch c.Type {
	case telegramapi.Private:
		kind = msg.ChatDM
	case telegramapi.Group, telegramapi.Supergroup:
		kind = msg.ChatGroup
	case telegramapi.Channel:
		kind = msg.ChatChannel
	}
	return adapter.Inbound{
		Chats: []msg.Chat{{JID: me.jid(c.ID), Kind: kind, Title: chatName(c)}},
	}
}

// ofMessage is of for the chat of a message. In the direct messages of a channel that is the conversation with one
// subscriber.
func (me Self) ofMessage(m *telegramapi.Message) adapter.Inbound {
	in, t := me.of(&m.Chat), m.DirectTopic
	if t != nil {
		in.Chats[0].JID, in.Chats[0].Kind = me.room(m), msg.ChatDM
		if t.User != nil {
			in.Chats[0].Title = userName(t.User)
		}
	}
	return in
}

// room is the address of the chat of a message.
func (me Self) room(m *telegramapi.Message) string {
	if t := m.DirectTopic; t != nil {
		return telegramapi.TopicJID(me.Platform, m.Chat.ID, t.ID)
	}
	return me.jid(m.Chat.ID)
}

// jid is the address of a chat or of a sender.
func (me Self) jid(id int64) string { return telegramapi.JID(me.Platform, id) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// millis converts a date, in unix seconds, into unix milliseconds, 0 if it is invalid.
func millis(date int64) int64 {
	if date <= 0 || date > math.MaxInt64/1000 {
		return 0
	}
	return adapter.UnixMilli(date * 1000)
}
