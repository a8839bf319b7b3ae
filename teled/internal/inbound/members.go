package inbound

import (
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// change is one member who joined or left.
type change struct {
	me   Self
	chat *telegramapi.Chat
	verb string // join or leave
	user *telegramapi.User
	by   adapter.Actor // the actor, which may be the user
	date int64
}

// members converts a message about members who joined or left. The bot's own come as another update.
func members(m *telegramapi.Message, by adapter.Actor, me Self) (rows []*msg.Message, err error) {
	all, verb := m.NewChatMembers, msg.VerbJoin
	if len(all) == 0 {
		all, verb = []telegramapi.User{*m.LeftChatMember}, msg.VerbLeave
	}
	for i := range all {
		if all[i].ID == 0 {
			return nil, fmt.Errorf("message %d in %s: a member without an id", m.ID, me.jid(m.Chat.ID))
		}
		if all[i].ID != me.ID {
			rows = append(rows, change{me, &m.Chat, verb, &all[i], by, m.Date}.row())
		}
	}
	return rows, nil
}

// standing converts a change of a member's status. Only joins and leaves make rows.
func standing(u *telegramapi.ChatMemberUpdated, me Self) (adapter.Inbound, error) {
	switch {
	case u.Chat.ID == 0:
		return adapter.Inbound{}, errors.New("a change of a member without a chat")
	case u.New.User.ID == 0:
		return adapter.Inbound{}, fmt.Errorf("a change of a member of %s without a user", me.jid(u.Chat.ID))
	case u.From.ID == 0:
		return adapter.Inbound{}, fmt.Errorf("a change of a member of %s without a user", me.jid(u.Chat.ID))
	}
	r := me.of(&u.Chat)
	verb := msg.VerbJoin
	switch {
	case u.Old.In() == u.New.In():
		return r, nil
	case u.Old.In():
		verb = msg.VerbLeave
	}
	by := me.userActor(&u.From)
	if u.From.ID == anonymousAdmin {
		by = me.chatActor(&u.Chat)
	}
	c := change{me, &u.Chat, verb, &u.New.User, by, u.Date}
	switch {
	case u.From.ID == me.ID || u.Chat.IsDirect: // by the bot itself, or where one cannot write
	case u.New.User.ID == me.ID:
		r.Messages = []*msg.Message{c.ofOurs()}
	default:
		r.Messages = []*msg.Message{c.row()}
	}
	return r, nil
}

// row is sent by the member who joined or left.
func (c change) row() *msg.Message {
	who := c.me.userActor(c.user)
	if c.by.JID == who.JID {
		return c.rowOf(who, c.either("joined", "left"))
	}
	return c.rowOf(who, c.either("was added by ", "was removed by ")+c.by.Name)
}

// ofOurs is sent by the user who added the bot, which addresses it, or removed it.
func (c change) ofOurs() *msg.Message {
	text := c.either("added the bot", "removed the bot")
	if c.chat.Type == telegramapi.Private {
		text = c.either("unblocked the bot", "blocked the bot")
	}
	row := c.rowOf(c.by, text)
	row.Addressed = c.verb == msg.VerbJoin
	return row
}

func (c change) either(join, leave string) string {
	if c.verb == msg.VerbJoin {
		return join
	}
	return leave
}

func (c change) rowOf(who adapter.Actor, text string) *msg.Message {
	return &msg.Message{
		ChatJID: c.me.jid(c.chat.ID), PlatformID: fmt.Sprintf("m:%s:%d:%d", c.verb, c.user.ID, c.date),
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: c.verb, Content: text, Timestamp: millis(c.date),
	}
}
