package inbound

import (
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// press converts the press of a button of a question. One of another button makes no row.
func press(q *telegramapi.CallbackQuery, me Self) (in adapter.Inbound, err error) {
	pressed, ours := msg.ParseButtonData(q.Data)
	switch {
	case !ours || q.Message == nil: // the button is of a message that was sent by an inline query
		return in, nil
	case q.ID == "" || q.Message.Chat.ID == 0 || q.Message.ID <= 0:
		return in, errors.New("a press without an id, a chat or a message")
	case q.From.ID == 0:
		return in, fmt.Errorf("press %s in %s without a user", q.ID, me.jid(q.Message.Chat.ID))
	}
	from, thread := me.userActor(&q.From), threadOf(q.Message)
	in.Messages = []*msg.Message{{
		ChatJID: me.room(q.Message), PlatformID: "q:" + q.ID, TargetID: decimal(q.Message.ID),
		Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Verb: msg.VerbAnswer, Content: pressed.JSON(), ThreadID: thread, Topic: thread,
	}}
	return in, nil
}
