package inbound

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

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
	case "", "file_share", "thread_broadcast", "bot_message", "me_message":
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
func sender(m *Message, names Names) (adapter.Actor, bool) {
	id := cmp.Or(m.User, m.BotID)
	if id == "" {
		return adapter.Actor{}, false
	}
	p := adapter.Actor{JID: jid(id), Bot: m.BotID != "" || m.Subtype == "bot_message" || m.User == slackbot}
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
	r := of(m.Channel, names)
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
	row.Attachments, row.PendingFiles = attachments(m.Files)
	r.Messages = []*msg.Message{row}
	return r, nil
}

// rowOf sets what all rows about a message share: chat, thread, sender and content. It is nil for the
// bot's own messages.
func rowOf(channel string, m *Message, me Self, names Names) (row *msg.Message, s adapter.Body, err error) {
	if !isTS(m.TS) {
		return nil, s, fmt.Errorf("a message in %s without an id", jid(channel))
	}
	if me.is(m.User, m.BotID) {
		return nil, s, nil
	}
	from, ok := sender(m, names)
	if !ok {
		return nil, s, fmt.Errorf("message %s in %s: no sender", m.TS, jid(channel))
	}
	s = bodyOf(m, me, names)
	return &msg.Message{
		ChatJID: jid(channel), PlatformID: m.TS, Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Content: s.Content, Topic: threadOf(m), ThreadID: threadOf(m), Timestamp: millis(m.TS),
	}, s, nil
}

// change converts the new version of a message. What Slack adds by itself, such as a link preview, makes
// no row. Only the new text decides whether it addresses the bot, since all else that could did so in
// the first version.
func change(m *Message, me Self, names Names) (adapter.Inbound, error) {
	now := m.Changed
	if now == nil {
		return adapter.Inbound{}, fmt.Errorf("an edit in %s without a message", jid(m.Channel))
	}
	if now.Subtype == "tombstone" { // the deleted first message of a thread that continues
		return deletion(m.Channel, now.TS, m.EventTS, cmp.Or(m.Previous, now), me, names)
	}
	if now.Edited == nil || m.Previous != nil && now.Text == m.Previous.Text {
		return adapter.Inbound{}, nil
	}
	if !isTS(now.Edited.TS) {
		return adapter.Inbound{}, fmt.Errorf("an edit of %s in %s without a time", now.TS, jid(m.Channel))
	}
	row, s, err := rowOf(m.Channel, now, me, names)
	if err != nil || row == nil {
		return adapter.Inbound{}, err
	}
	row.TargetID, row.PlatformID = now.TS, now.TS+":e:"+now.Edited.TS
	row.Verb, row.Addressed, row.Timestamp = msg.VerbEdit, s.Addressed, millis(now.Edited.TS)
	r := of(m.Channel, names)
	r.Messages = []*msg.Message{row}
	return r, nil
}

// deletion converts a deleted message. Its author is the sender, since Slack does not say who deleted
// it.
func deletion(channel, ts, at string, was *Message, me Self, names Names) (adapter.Inbound, error) {
	if !isTS(ts) {
		return adapter.Inbound{}, fmt.Errorf("a deletion in %s has no id", jid(channel))
	}
	from := adapter.Actor{JID: jid("unknown")}
	if was != nil {
		if me.is(was.User, was.BotID) {
			return adapter.Inbound{}, nil
		}
		if p, ok := sender(was, names); ok {
			from = p
		}
	}
	r := of(channel, names)
	r.Messages = []*msg.Message{{
		ChatJID: jid(channel), PlatformID: ts + ":d", TargetID: ts, Verb: msg.VerbDelete,
		Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Topic: threadOf(was), ThreadID: threadOf(was), Timestamp: millis(at),
	}}
	return r, nil
}

// bodyOf makes the content of a message: its text, then what was forwarded with it. The content of a
// bot's message without text comes from its blocks and cards.
func bodyOf(m *Message, me Self, names Names) (s adapter.Body) {
	text := m.Text
	if strings.TrimSpace(text) == "" {
		text = blockText(m.Blocks)
	}
	words, addressed := plain(text, me, names)
	var lines []string
	if words != "" {
		lines = append(lines, words)
	}
	for i := range m.Attachments {
		if a := &m.Attachments[i]; a.IsShare || strings.TrimSpace(text) == "" {
			if card := cardText(a, names); card != "" {
				lines = append(lines, card)
			}
		}
	}
	return adapter.Body{
		Content: strings.Join(lines, "\n"), Addressed: addressed,
		Empty: len(lines) == 0 && len(m.Files) == 0 && !addressed,
	}
}

// cardText is the text of a card. A mention of the bot there is not the sender's.
func cardText(a *Attachment, names Names) string {
	var lines []string
	if a.IsShare {
		lines = append(lines, "forwarded from "+cmp.Or(plaintext.Line(a.AuthorName), plaintext.UnknownUser)+":")
	}
	for _, text := range []string{a.Pretext, a.Title, cmp.Or(a.Text, blockText(a.Blocks))} {
		if words, _ := plain(text, Self{}, names); strings.TrimSpace(words) != "" {
			lines = append(lines, words)
		}
	}
	if len(lines) == 0 && a.Fallback != "" {
		words, _ := plain(a.Fallback, Self{}, names)
		lines = append(lines, words)
	}
	return strings.Join(lines, "\n")
}
