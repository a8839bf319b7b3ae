package inbound

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// message converts a message, an edit or a deletion.
func message(m *Message, me Self, names Names) (adapter.Inbound, error) {
	if m.Channel == "" {
		return adapter.Inbound{}, errors.New("a message without a channel")
	}
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "bot_message", "me_message", "slackbot_response":
		return post(m, me, names)
	case "message_changed":
		return change(m, me, names)
	case "message_deleted":
		return deletion(m.Channel, cmp.Or(m.DeletedTS, tsOf(m.Previous)), m.EventTS, m.Previous, me, names)
	}
	return adapter.Inbound{}, nil // notices of the channel
}

func tsOf(m *Message) string {
	if m == nil {
		return ""
	}
	return m.TS
}

// sender is the author of a message.
func (me Self) sender(m *Message, names Names) (adapter.Actor, bool) {
	id := cmp.Or(m.User, m.BotID)
	if id == "" {
		return adapter.Actor{}, false
	}
	app := m.BotID != "" || m.Subtype == "bot_message" || m.User == slackbot
	p := adapter.Actor{JID: me.jid(id), Bot: app && !me.posts(m, names)}
	if p.Bot {
		p.Name = plaintext.Line(m.Username)
		if m.BotProfile != nil {
			p.Name = cmp.Or(p.Name, plaintext.Line(m.BotProfile.Name))
		}
	}
	if p.Name == "" {
		p.Name = nameOf(id, names)
	}
	return p, true
}

// threadOf is the thread of a message; the first message of a thread is not in it.
func threadOf(m *Message) string {
	if m == nil || m.ThreadTS == m.TS || !isTS(m.ThreadTS) {
		return ""
	}
	return m.ThreadTS
}

// post converts a message of a user or bot.
func post(m *Message, me Self, names Names) (adapter.Inbound, error) {
	row, s, err := rowOf(m.Channel, m, me, names)
	if err != nil {
		return adapter.Inbound{}, err
	}
	r := me.of(m.Channel, names)
	if row == nil || s.Empty {
		return r, nil
	}
	private := m.ChannelType == "im" || msg.KindOfJID(row.ChatJID) == msg.ChatDM
	ours := row.ThreadID != "" && (me.is(m.ParentUser, "") || m.Root != nil && me.is(m.Root.User, m.Root.BotID))
	row.ReplyToID = row.ThreadID
	row.Verb, row.Addressed = msg.VerbMessage, s.Addressed || ours || private
	switch {
	case s.Addressed:
		row.Verb = msg.VerbMention
	case ours && !private: // a pane's thread always begins with the bot
		row.Verb = msg.VerbReply
	}
	row.Attachments, row.PendingFiles = attachments(m)
	r.Messages = []*msg.Message{row}
	return r, nil
}

// rowOf sets the fields that all rows about a message share: chat, thread, sender and content. It is nil for the
// bot's own messages.
func rowOf(channel string, m *Message, me Self, names Names) (row *msg.Message, s adapter.Body, err error) {
	if !isTS(m.TS) {
		return nil, s, fmt.Errorf("a message in %s without an id", me.jid(channel))
	}
	if me.own(m, names) {
		return nil, s, nil
	}
	from, ok := me.sender(m, names)
	if !ok {
		return nil, s, fmt.Errorf("message %s in %s: no sender", m.TS, me.jid(channel))
	}
	s = bodyOf(m, me, names)
	return &msg.Message{
		ChatJID: me.jid(channel), PlatformID: m.TS, Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Content: s.Content, Topic: threadOf(m), ThreadID: threadOf(m), Timestamp: millis(m.TS),
	}, s, nil
}

// change converts the new version of a message. Slack's own additions, such as a link preview, make
// no row, unless it is a message that the text links to. Only the new text decides whether it addresses the bot,
// since all else that could did so in the first version.
func change(m *Message, me Self, names Names) (adapter.Inbound, error) {
	now := m.Changed
	if now == nil {
		return adapter.Inbound{}, fmt.Errorf("an edit in %s without a message", me.jid(m.Channel))
	}
	if now.Subtype == "tombstone" { // the deleted first message of a thread that continues
		return deletion(m.Channel, now.TS, m.EventTS, cmp.Or(m.Previous, now), me, names)
	}
	if m.Previous != nil && (sameEdit(now.Edited, m.Previous.Edited) || sameWords(now, m.Previous, me, names)) {
		return preview(m, me, names)
	}
	if now.Edited == nil {
		return adapter.Inbound{}, nil
	}
	if !isTS(now.Edited.TS) {
		return adapter.Inbound{}, fmt.Errorf("an edit of %s in %s without a time", now.TS, me.jid(m.Channel))
	}
	row, s, err := rowOf(m.Channel, now, me, names)
	if err != nil || row == nil {
		return adapter.Inbound{}, err
	}
	row.TargetID, row.PlatformID = now.TS, now.TS+":e:"+now.Edited.TS
	row.Verb, row.Addressed, row.Timestamp = msg.VerbEdit, s.Addressed, millis(now.Edited.TS)
	r := me.of(m.Channel, names)
	r.Messages = []*msg.Message{row}
	return r, nil
}

// sameEdit reports whether two versions of a message were last edited at the same time, or never.
func sameEdit(one, other *Edited) bool {
	return one == other || one != nil && other != nil && one.TS == other.TS
}

// sameWords reports whether two versions of a message differ at most in forwarded messages or previews.
func sameWords(m, other *Message, me Self, names Names) bool {
	return m.Text == other.Text && slices.Equal(ownWords(m, me, names).lines, ownWords(other, me, names).lines)
}

// preview converts a message to which Slack has added messages that its text links to. The row is an edit, whose
// id has their number, so that the same preview makes one row.
func preview(m *Message, me Self, names Names) (adapter.Inbound, error) {
	now := m.Changed
	quoted := quotedCards(now)
	if quoted <= quotedCards(m.Previous) {
		return adapter.Inbound{}, nil
	}
	row, _, err := rowOf(m.Channel, now, me, names)
	if err != nil || row == nil {
		return adapter.Inbound{}, err
	}
	row.TargetID, row.PlatformID = now.TS, fmt.Sprintf("%s:u:%d", now.TS, quoted)
	row.Verb, row.Timestamp = msg.VerbEdit, millis(m.EventTS)
	r := me.of(m.Channel, names)
	r.Messages = []*msg.Message{row}
	return r, nil
}

// quotedCards counts the messages that a message contains as cards.
func quotedCards(m *Message) (count int) {
	for i := range m.Attachments {
		if m.Attachments[i].quotes() {
			count++
		}
	}
	return count
}

// deletion converts a deleted message. Its author is the sender, since Slack does not say who deleted
// it.
func deletion(channel, ts, at string, was *Message, me Self, names Names) (adapter.Inbound, error) {
	if !isTS(ts) {
		return adapter.Inbound{}, fmt.Errorf("a deletion in %s has no id", me.jid(channel))
	}
	from := adapter.Actor{JID: me.jid("unknown")}
	if was != nil {
		if me.own(was, names) {
			return adapter.Inbound{}, nil
		}
		if p, ok := me.sender(was, names); ok {
			from = p
		}
	}
	r := me.of(channel, names)
	r.Messages = []*msg.Message{{
		ChatJID: me.jid(channel), PlatformID: ts + ":d", TargetID: ts, Verb: msg.VerbDelete,
		Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Topic: threadOf(was), ThreadID: threadOf(was), Timestamp: millis(at),
	}}
	return r, nil
}

// Quoted converts a post that was sent before another one in its thread, also one of the bot's own; nil if
// it makes no row.
func Quoted(m *Message, me Self, names Names) *msg.Message {
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "bot_message", "me_message", "slackbot_response":
	default:
		return nil
	}
	other := me
	other.User, other.Bot = "", ""
	row, s, err := rowOf(m.Channel, m, other, names)
	if err != nil || row == nil || s.Empty {
		return nil
	}
	row.IsBot = row.IsBot || me.own(m, names)
	row.Verb, row.ReplyToID = msg.VerbMessage, row.ThreadID
	row.Attachments, row.PendingFiles = attachments(m)
	return row
}
