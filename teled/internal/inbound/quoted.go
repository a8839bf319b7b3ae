package inbound

import (
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// replied is the message that one replies to, if it is in the same chat, and whether that is the bot's.
func replied(m *telegramapi.Message, me Self) (id string, ours bool) {
	if r := repliedTo(m); r != nil {
		return decimal(r.ID), isUs(r.From, me)
	}
	if e := m.ExternalReply; e != nil && here(m, e) {
		return decimal(e.MessageID), isUs(e.Origin.SenderUser, me)
	}
	return "", false
}

// repliedTo is the message of the same topic that one replies to. In a topic Telegram makes every other
// message a reply to the first one of the topic.
func repliedTo(m *telegramapi.Message) *telegramapi.Message {
	r := m.ReplyToMessage
	if r == nil || r.ID <= 0 || r.ForumTopicCreated != nil || m.IsTopicMessage && r.ID == m.ThreadID {
		return nil
	}
	return r
}

// here reports whether a reply from elsewhere is one from another topic of the chat. Another subscriber's topic is
// another chat.
func here(m *telegramapi.Message, e *telegramapi.ExternalReply) bool {
	return m.DirectTopic == nil && e.Chat != nil && e.Chat.ID == m.Chat.ID && e.MessageID > 0
}

func isUs(u *telegramapi.User, me Self) bool { return u != nil && u.ID == me.ID }

// quoted are the messages that Telegram sends along with an answer: a bot in privacy mode has not received
// them, and one of the bot itself may be older than the database. One of the bot in another topic is left out:
// Telegram does not send its text.
func quoted(m *telegramapi.Message, me Self) []*msg.Message {
	r, thread := repliedTo(m), threadOf(m)
	if e := m.ExternalReply; r == nil && e != nil && here(m, e) && !isUs(e.Origin.SenderUser, me) {
		r, thread = fromTopic(m), ""
	}
	if r == nil {
		return nil
	}
	from, err := sender(r, me)
	s := bodyOf(r, me)
	if err != nil || s.Empty {
		return nil
	}
	row := post(r, from, me, s)
	row.ChatJID, row.ThreadID, row.Topic = me.room(m), thread, thread
	row.Verb, row.Addressed = msg.VerbMessage, false
	return []*msg.Message{row}
}

// fromTopic is the message of another topic that one replies to, as far as Telegram sends it: of its text
// only the part that is quoted. Its topic is not known.
func fromTopic(m *telegramapi.Message) *telegramapi.Message {
	e := m.ExternalReply
	r := &telegramapi.Message{
		ID: e.MessageID, Chat: m.Chat, Date: e.Origin.Date, From: e.Origin.SenderUser, SenderChat: e.Origin.Chat,
		Things: e.Things,
	}
	if e.Origin.SenderChat != nil {
		r.SenderChat = e.Origin.SenderChat
	}
	if m.Quote != nil {
		r.Text, r.Entities = m.Quote.Text, m.Quote.Entities
	}
	return r
}

// quote is the part that the user selected of the message that is answered: of its text, of its checklist or its poll.
// Of a message without a row, one elsewhere or a story, it is all that Telegram sends, and names the author.
func quote(m *telegramapi.Message, me Self, isRow bool) string {
	e, q, text := m.ExternalReply, m.Quote, pointedAt(m)
	if q != nil && (q.IsManual || !isRow) {
		text, _ = plain(q.Text, q.Entities, Self{})
	}
	switch {
	case isRow:
		return text
	case e != nil:
		parts := []string{text, describe(&e.Things, me)}
		for _, f := range filesOf(&e.Things) {
			parts = append(parts, plaintext.Bracket("file", f.FileName))
		}
		return around(originName(&e.Origin)+":\n", joined("\n", parts...), "")
	case m.ReplyToStory != nil:
		return joined("\n", story(m.ReplyToStory), text)
	}
	return text
}

// pointedAt is the task or the option that a user answers, "" for none.
func pointedAt(m *telegramapi.Message) string {
	r := repliedTo(m)
	if r == nil {
		return ""
	}
	if r.Checklist != nil {
		for _, t := range r.Checklist.Tasks {
			if t.ID == m.ReplyToTask && t.ID != 0 {
				return plaintext.Line(t.Text)
			}
		}
	}
	if r.Poll != nil {
		for _, o := range r.Poll.Options {
			if o.ID == m.ReplyToOption && o.ID != "" {
				return plaintext.Line(o.Text)
			}
		}
	}
	return ""
}
