package inbound

import (
	"errors"
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// message converts a message, or the new version of one.
func message(m *discordapi.Message, me Self, known *Guilds, edited bool) (adapter.Inbound, error) {
	p, err := placeOf(m.GuildID, m.ChannelID, me, known)
	switch {
	case err != nil:
		return adapter.Inbound{}, err
	case !discordapi.IsID(m.ID):
		return adapter.Inbound{}, fmt.Errorf("a message in %s without an id", p.chat.JID)
	case m.Flags&discordapi.FlagLoading != 0, edited && m.EditedTimestamp == nil &&
		!isResponse(m): // the bot is thinking; a preview, a pin, a flag
		return adapter.Inbound{}, nil
	case edited && m.Author == nil && m.Content == "" &&
		len(m.Embeds)+len(m.Components) == 0: // an update of something else
		return adapter.Inbound{}, nil
	case edited && m.Author == nil:
		return p.of(unsigned(m, &p, me, known)), nil
	case m.Author == nil || !discordapi.IsID(m.Author.ID):
		return adapter.Inbound{}, fmt.Errorf("message %s in %s: no author", m.ID, p.chat.JID)
	case m.Type == discordapi.MessageStarter:
		return starter(m, p, me, known), nil
	case m.Author.ID == me.ID, !written(m.Type):
		return p.of(), nil
	}
	row := post(m, &p, me, known)
	p.with(row)
	in := p.of(row)
	in.Admins = known.admins(p.guild, row, m.Member)
	if edited && m.EditedTimestamp != nil {
		edit(row, m)
		return in, nil
	}
	in.Quoted = quoted(m, &p, me, known)
	return in, nil
}

// quoted is the row of the message that one replies to or shows again, if Discord has sent it along; the bot may never
// have seen it. It starts nothing, whatever it says.
func quoted(m *discordapi.Message, p *place, me Self, known *Guilds) []*msg.Message {
	of := m.Referenced
	refers := m.Type == discordapi.MessageReply || m.Type == discordapi.MessageStarter
	if !refers || of == nil || of.Author == nil || !discordapi.IsID(of.Author.ID) || !discordapi.IsID(of.ID) ||
		!written(of.Type) {
		return nil
	}
	row := post(of, p, me, known)
	row.Verb, row.Addressed = msg.VerbMessage, false
	p.of(row)
	return []*msg.Message{row}
}

// starter has the message that a thread was made from, which is one of the thread's channel and has its id.
func starter(m *discordapi.Message, p place, me Self, known *Guilds) adapter.Inbound {
	in := p.of()
	if p.thread != "" && m.Referenced != nil && m.Referenced.ID == p.thread {
		p.thread = ""
		in.Quoted = quoted(m, &p, me, known)
	}
	return in
}

// written reports whether a message is one of a user or bot, not a notice of the channel.
func written(kind int) bool {
	switch kind {
	case discordapi.MessageDefault, discordapi.MessageReply, discordapi.MessageSlash, discordapi.MessageContextMenu:
		return true
	}
	return false
}

// isResponse reports whether a message is a bot's answer to a command. Its words may come with an update that is no
// edit, in place of the notice that the bot is thinking. If they were there before, their row is stored already.
func isResponse(m *discordapi.Message) bool {
	return m.Author != nil && (m.Type == discordapi.MessageSlash || m.Type == discordapi.MessageContextMenu)
}

// post is the row of a message of a user.
func post(m *discordapi.Message, p *place, me Self, known *Guilds) *msg.Message {
	s := bodyOf(m, p, me, known)
	replyTo, ours := replied(m, me, s)
	verb := msg.VerbMessage
	switch {
	case s.Addressed:
		verb = msg.VerbMention
	case ours:
		verb = msg.VerbReply
	}
	files, pending := attachments(m)
	from := me.actor(m.Author, m.Member)
	return &msg.Message{
		PlatformID: m.ID, Sender: from.JID, SenderName: from.Name, IsBot: from.Bot || m.WebhookID != "",
		Verb: verb, Content: s.Content, Attachments: files, PendingFiles: pending,
		ReplyToID: replyTo, Addressed: s.Addressed || ours || p.isDM(),
		Timestamp: adapter.UnixMilli(discordapi.SnowflakeTime(m.ID)),
	}
}

// replied is the message that one replies to, and whether that is the bot's. If Discord has not looked
// it up, a ping without a mention shows that it is.
func replied(m *discordapi.Message, me Self, s adapter.Body) (id string, ours bool) {
	r := m.Reference
	if r == nil || r.Type != discordapi.ReferenceReply || m.Type != discordapi.MessageReply ||
		!discordapi.IsID(r.MessageID) {
		return "", false
	}
	if m.Referenced != nil {
		return r.MessageID, m.Referenced.Author != nil && m.Referenced.Author.ID == me.ID
	}
	return r.MessageID, mentions(m, me.ID) && !s.Addressed
}

// edit turns the row of a message into that of its new version. Only the new text decides whether it
// addresses the bot, since all else that could did so in the first version.
func edit(row *msg.Message, m *discordapi.Message) {
	at := m.EditedTimestamp.UnixMilli()
	row.Addressed = row.Verb == msg.VerbMention
	row.TargetID = row.PlatformID
	row.PlatformID = fmt.Sprintf("%s:e:%d", row.TargetID, at)
	row.Verb, row.Timestamp = msg.VerbEdit, adapter.UnixMilli(at)
}

// unsigned is the row of an edit whose event leaves out the author. The chat is the sender, as of a deletion.
func unsigned(m *discordapi.Message, p *place, me Self, known *Guilds) *msg.Message {
	s := bodyOf(m, p, me, known)
	row := &msg.Message{PlatformID: m.ID, Sender: p.chat.JID, SenderName: plaintext.UnknownUser, Content: s.Content,
		Verb: msg.VerbMessage}
	if s.Addressed {
		row.Verb = msg.VerbMention
	}
	edit(row, m)
	return row
}

// deleted converts deletions. The chat is the sender, since Discord does not say who deleted them.
func deleted(d *discordapi.Deleted, me Self, known *Guilds) (adapter.Inbound, error) {
	p, err := placeOf(d.GuildID, d.ChannelID, me, known)
	if err != nil {
		return adapter.Inbound{}, err
	}
	ids := d.IDs
	if d.ID != "" {
		ids = []string{d.ID}
	}
	var rows []*msg.Message
	for _, id := range ids {
		if !discordapi.IsID(id) {
			return adapter.Inbound{}, fmt.Errorf("a deletion in %s without a message id", p.chat.JID)
		}
		rows = append(rows, &msg.Message{
			PlatformID: id + ":d", Sender: p.chat.JID, SenderName: plaintext.UnknownUser, Verb: msg.VerbDelete,
			TargetID: id,
		})
	}
	return p.of(rows...), nil
}

// thread converts a thread that was made or renamed.
func thread(c *discordapi.Channel, me Self, known *Guilds) (adapter.Inbound, error) {
	if !c.IsThread() {
		return adapter.Inbound{}, nil
	}
	if !discordapi.IsID(c.ID) || !discordapi.IsID(c.ParentID) {
		return adapter.Inbound{}, errors.New("a thread without an id or a channel")
	}
	return adapter.Inbound{Threads: []msg.Thread{threadOf(c, me, known)}}, nil
}
