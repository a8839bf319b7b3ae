package inbound

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// message converts a message, or the new version of one.
func message(m *telegramapi.Message, me Self, edited bool) (adapter.Inbound, error) {
	if m.Chat.ID == 0 {
		return adapter.Inbound{}, errors.New("a message without a chat")
	}
	if m.ID <= 0 {
		return adapter.Inbound{}, fmt.Errorf("a message in %s without an id", me.jid(m.Chat.ID))
	}
	if m.DirectTopic != nil && m.DirectTopic.ID == 0 || m.Chat.IsDirect && m.DirectTopic == nil && !m.IsNotice() {
		return adapter.Inbound{}, fmt.Errorf("message %d in %s, where each has a topic, without one", m.ID,
			me.jid(m.Chat.ID))
	}
	if moved := move(m, me); moved != nil {
		return adapter.Inbound{Moved: moved}, nil
	}
	from, err := sender(m, me)
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("message %d in %s: %w", m.ID, me.jid(m.Chat.ID), err)
	}
	r := me.ofMessage(m)
	if t, ok := topic(m, from, me); ok {
		if t.ID != "" {
			r.Threads = []msg.Thread{t}
		}
		return r, nil
	}
	if len(m.NewChatMembers) > 0 || m.LeftChatMember != nil {
		r.Messages, err = members(m, from, me)
		return r, err
	}
	if from.JID == me.jid(me.ID) {
		return r, nil
	}
	s := bodyOf(m, me)
	step := edited && m.Location != nil && m.Location.LivePeriod > 0 // one of the many updates of a live location
	if s.Empty || step {
		return r, nil
	}
	row := post(m, from, me, s)
	r.Quoted = quoted(m, me)
	row.Quote = quote(m, me, len(r.Quoted) > 0)
	if edited {
		edit(row, m, s)
	} else if m.MediaGroupID != "" {
		row.GroupKey = "album:" + m.MediaGroupID
	}
	r.Messages = []*msg.Message{row}
	return r, nil
}

// move is the change of a group's address, nil for none.
func move(m *telegramapi.Message, me Self) *adapter.Moved {
	switch {
	case m.MigrateToChatID != 0:
		return &adapter.Moved{From: me.jid(m.Chat.ID), To: me.jid(m.MigrateToChatID)}
	case m.MigrateFromChatID != 0:
		return &adapter.Moved{From: me.jid(m.MigrateFromChatID), To: me.jid(m.Chat.ID)}
	}
	return nil
}

func sender(m *telegramapi.Message, me Self) (adapter.Actor, error) {
	switch {
	case m.SenderChat != nil && m.SenderChat.ID != 0:
		return me.chatActor(m.SenderChat), nil
	case m.From != nil && m.From.ID != 0:
		return me.userActor(m.From), nil
	case m.Chat.Type == telegramapi.Channel:
		return me.chatActor(&m.Chat), nil
	}
	return adapter.Actor{}, errors.New("no sender")
}

// topic is the forum topic that a notice is about. The General topic has no id.
func topic(m *telegramapi.Message, from adapter.Actor, me Self) (t msg.Thread, ok bool) {
	t = msg.Thread{ChatJID: me.jid(m.Chat.ID), ID: threadOf(m), Kind: "forum_topic"}
	switch {
	case m.ForumTopicCreated != nil:
		t.ID = decimal(cmp.Or(m.ThreadID, m.ID)) // the notice is the first message of its topic
		t.Title, t.Author = plaintext.Line(m.ForumTopicCreated.Name), from.JID
	case m.ForumTopicEdited != nil:
		t.Title = plaintext.Line(m.ForumTopicEdited.Name)
	case m.ForumTopicClosed == nil && m.ForumTopicReopened == nil:
		return t, false
	}
	return t, true
}

// threadOf is the topic of a message. The reply threads of a supergroup without topics are no topics. Each subscriber
// of a channel has one, so that a group to which all their direct messages are routed has a session for each.
func threadOf(m *telegramapi.Message) string {
	if m.DirectTopic != nil {
		return decimal(m.DirectTopic.ID)
	}
	if !m.IsTopicMessage || m.ThreadID == 0 {
		return ""
	}
	return decimal(m.ThreadID)
}

// post is the row of a message of a user.
func post(m *telegramapi.Message, from adapter.Actor, me Self, s adapter.Body) *msg.Message {
	replyTo, ours := replied(m, me)
	verb := msg.VerbMessage
	switch {
	case s.Addressed:
		verb = msg.VerbMention
	case ours:
		verb = msg.VerbReply
	}
	files, pending := attachments(&m.Things)
	return &msg.Message{
		ChatJID: me.room(m), PlatformID: decimal(m.ID),
		Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Verb: verb, Content: s.Content, Attachments: files, PendingFiles: pending,
		Topic: threadOf(m), ThreadID: threadOf(m), ReplyToID: replyTo,
		Addressed: s.Addressed || ours || m.Chat.Type == telegramapi.Private ||
			m.DirectTopic != nil && m.SenderChat == nil,
		Timestamp: millis(m.Date),
	}
}

// edit turns the row of a message into that of its new version. Only the new text decides whether it
// addresses the bot, since all else that could did so in the first version.
func edit(row *msg.Message, m *telegramapi.Message, s adapter.Body) {
	files := ""
	for _, f := range filesOf(&m.Things) {
		files += f.FileUniqueID
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%t %q %s", s.Addressed, files, s.Content))
	row.TargetID = row.PlatformID
	row.PlatformID = fmt.Sprintf("%s:e:%d-%x", row.TargetID, m.EditDate, hash[:4])
	row.Verb, row.Addressed = msg.VerbEdit, s.Addressed
	row.Timestamp = millis(m.EditDate)
}
