package discord

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The documented limits of messages.
const (
	maxContent     = 2000
	maxAttachments = 10
	// nonceLifetime is how long a nonce is remembered: "a few minutes" in the documentation.
	nonceLifetime = 3 * time.Minute
)

// posted is a message of the bot with a nonce.
type posted struct {
	nonce string
	at    time.Time
	ch    *channel
	id    string
}

// outgoing is the body of CreateMessage, and partly of EditMessage.
type outgoing struct {
	Content     *string         `json:"content"`
	Nonce       json.RawMessage `json:"nonce"`
	Enforce     bool            `json:"enforce_nonce"`
	TTS         bool            `json:"tts"`
	Embeds      []Embed         `json:"embeds"`
	Allowed     *allowed        `json:"allowed_mentions"`
	Flags       *int            `json:"flags"`
	Poll        *pollRequest    `json:"poll"`
	Attachments []attachmentRef `json:"attachments"`
	Stickers    []string        `json:"sticker_ids"`
	Reference   *struct {
		Type            int    `json:"type"`
		MessageID       string `json:"message_id"`
		ChannelID       string `json:"channel_id"`
		FailIfNotExists *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// allowed is the mentions that the request allows: all by default.
func (o *outgoing) allowed() allowed {
	if o.Allowed == nil {
		return allMentions()
	}
	return *o.Allowed
}

func (o *outgoing) check(files []Upload) error {
	if o.Content != nil {
		trimmed := strings.TrimSpace(*o.Content) // as Discord does
		o.Content = &trimmed
		if utf8.RuneCountInString(trimmed) > maxContent {
			return tooLong("content", maxContent)
		}
	}
	if o.Poll != nil {
		if err := o.Poll.check(); err != nil {
			return err
		}
	}
	for _, a := range o.Attachments {
		if !slices.ContainsFunc(files, func(u Upload) bool { return a.names(u) }) && !a.known() {
			return invalid("attachments", "ATTACHMENT_NOT_FOUND", "Attachment data not found.")
		}
	}
	if err := checkEmbeds(o.Embeds); err != nil {
		return err
	}
	return o.allowed().check()
}

// read parses and validates the body of a request that sends or edits a message.
func (o *outgoing) read(q *request) ([]Upload, error) {
	if err := q.decode(o); err != nil {
		return nil, err
	}
	files, err := q.files()
	if err != nil {
		return nil, err
	}
	if err := o.check(files); err != nil {
		return nil, err
	}
	if o.Content != nil {
		q.call.Text = *o.Content
	}
	return files, nil
}

func (s *Server) createMessage(q *request) (any, error) {
	ch, err := s.writable(q)
	if err != nil {
		return nil, err
	}
	var o outgoing
	files, err := o.read(q)
	if err != nil {
		return nil, err
	}
	if q.call.Nonce, err = nonceText(o.Nonce); err != nil {
		return nil, err
	}
	if o.Enforce && q.call.Nonce != "" {
		if first := s.byNonce(q.call.Nonce); first != nil {
			q.call.Repeated = true
			return first.snapshot(), nil
		}
	}
	m, err := s.compose(q, ch, &o, files)
	if err != nil {
		return nil, err
	}
	s.add(ch, m)
	if q.call.Nonce != "" {
		s.posted = append(s.posted, posted{nonce: q.call.Nonce, at: s.clock(), ch: ch, id: m.ID})
	}
	s.emitMessage("MESSAGE_CREATE", ch, m)
	return s.inAnswer(ch, m), nil
}

// byNonce is the bot's recent message with a nonce; nil if there is none.
func (s *Server) byNonce(nonce string) *Message {
	s.posted = slices.DeleteFunc(s.posted, func(p posted) bool { return s.clock().Sub(p.at) > nonceLifetime })
	for _, p := range s.posted {
		if p.nonce == nonce {
			return p.ch.messages[p.id]
		}
	}
	return nil
}

// compose is the message of a request.
func (s *Server) compose(q *request, ch *channel, o *outgoing, files []Upload) (*Message, error) {
	m := &Message{Author: s.me, Nonce: o.Nonce, TTS: o.TTS, Embeds: o.Embeds, Content: q.call.Text}
	if o.Flags != nil {
		m.Flags = *o.Flags
	}
	if err := s.refer(q, ch, o, m); err != nil {
		return nil, err
	}
	switch {
	case m.Content == "" && len(m.Embeds)+len(files)+len(m.Snapshots)+len(o.Stickers) == 0 && o.Poll == nil:
		return nil, refuse(400, 50006, "Cannot send an empty message")
	case len(files) > 0 && !s.may(ch, AttachFiles), o.Poll != nil && !s.may(ch, SendPolls):
		return nil, missingPermissions()
	}
	for _, u := range files {
		m.Attachments = append(m.Attachments, s.newAttachment(ch, File{Name: u.Name, Data: u.Data, Description: o.describe(u)}))
	}
	if o.Poll != nil {
		m.Poll = o.Poll.open(s.now())
	}
	q.call.Pings = s.mark(ch, m, o.allowed())
	if answered := ch.messages[q.call.ReplyTo]; answered != nil && o.allowed().Replied && answered.Author.ID != s.me.ID {
		q.call.Pings = append(q.call.Pings, answered.Author.Mention())
		s.mention(ch, m, answered.Author.ID)
	}
	return m, nil
}

// refer makes a message a reply, or a forwarded message.
func (s *Server) refer(q *request, ch *channel, o *outgoing, m *Message) error {
	if o.Reference == nil {
		return nil
	}
	id := o.Reference.MessageID
	if _, ok := snowflake(id); !ok {
		return badSnowflake("message_reference.message_id", id)
	}
	from := ch
	if o.Reference.ChannelID != "" && o.Reference.Type == 1 {
		from = s.channels[o.Reference.ChannelID]
	}
	var of *Message
	if from != nil {
		of = from.messages[id]
	}
	switch {
	case of == nil && o.Reference.Type == 0 && o.Reference.FailIfNotExists != nil && !*o.Reference.FailIfNotExists:
		return nil // an ordinary message
	case of == nil:
		return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	case of.isSystem():
		return invalid("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
	case o.Reference.Type == 1:
		m.forward(from, of)
	default:
		m.answer(ch, of)
		q.call.ReplyTo = id
	}
	return nil
}

func (m *Message) isSystem() bool {
	return !slices.Contains([]int{Default, ReplyMessage, ChatInputCommand}, m.Type)
}

func (m *Message) answer(ch *channel, of *Message) {
	m.Type = ReplyMessage
	m.Reference = &Reference{MessageID: of.ID, ChannelID: ch.info.ID, GuildID: ch.info.GuildID}
}

func (m *Message) forward(from *channel, of *Message) {
	m.Flags |= HasSnapshot
	m.Reference = &Reference{Type: 1, MessageID: of.ID, ChannelID: from.info.ID, GuildID: from.info.GuildID}
	if of.Snapshots != nil {
		m.Snapshots = of.Snapshots
		return
	}
	m.Snapshots = []Snapshot{{Message: SnapshotMessage{
		Type: of.Type, Content: of.Content, Embeds: of.Embeds, Attachments: of.Attachments, Timestamp: of.Timestamp,
		EditedTimestamp: of.EditedTimestamp, Flags: of.Flags, Stickers: of.Stickers, Mentions: of.Mentions, MentionRoles: of.MentionRoles,
	}}}
}

// add adds a message to a channel: it sets its id and time, and makes its lists non-null. It
// unarchives a thread.
func (s *Server) add(ch *channel, m *Message) *Message {
	if m.ID == "" {
		m.ID = s.newID()
	}
	m.ChannelID, m.Timestamp = ch.info.ID, s.now()
	fill(&m.Mentions)
	fill(&m.MentionRoles)
	fill(&m.Attachments)
	fill(&m.Embeds)
	fill(&m.Components)
	ch.messages[m.ID], ch.last = m, m.ID
	ch.sent++
	if ch.isThread() && ch.info.Metadata.Archived {
		s.archive(ch, false, ch.info.Metadata.Locked)
	}
	return m
}

// fill replaces a nil list by an empty one.
func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func (s *Server) editMessage(q *request) (any, error) {
	ch, m, err := s.message(q)
	if err != nil {
		return nil, err
	}
	var o outgoing
	files, err := o.read(q)
	switch {
	case err != nil:
		return nil, err
	case m.Author.ID != s.me.ID:
		return nil, refuse(403, 50005, "Cannot edit a message authored by another user")
	case m.Poll != nil:
		return nil, refuse(400, 520003, "Cannot edit a poll message")
	case ch.isThread() && (ch.info.Metadata.Archived || ch.info.Metadata.Locked):
		return nil, archived()
	}
	content, embeds := m.Content, m.Embeds
	if o.Content != nil {
		content = *o.Content
	}
	if o.Embeds != nil {
		embeds = o.Embeds
	}
	if content == "" && len(embeds)+len(m.Attachments)+len(files) == 0 {
		return nil, refuse(400, 50006, "Cannot send an empty message")
	}
	for _, u := range files {
		m.Attachments = append(slices.Clone(m.Attachments), s.newAttachment(ch, File{Name: u.Name, Data: u.Data, Description: o.describe(u)}))
	}
	m.Content, m.Embeds = content, embeds
	s.mark(ch, m, o.allowed()) // an edit does not notify
	s.edited(ch, m)
	return s.inAnswer(ch, m), nil
}

// edited emits the edit of a user.
func (s *Server) edited(ch *channel, m *Message) {
	at := s.now()
	m.EditedTimestamp = &at
	s.emitMessage("MESSAGE_UPDATE", ch, m)
}

func (s *Server) deleteMessage(q *request) (any, error) {
	ch, m, err := s.message(q)
	switch {
	case err != nil:
		return nil, err
	case m.Author.ID == s.me.ID:
	case ch.guild == nil:
		return nil, refuse(403, 50003, "Cannot execute action on a DM channel")
	default:
		return nil, missingPermissions()
	}
	s.remove(ch, m.ID)
	return nil, nil
}

// remove deletes messages, and emits one event, for several a bulk one.
func (s *Server) remove(ch *channel, ids ...string) {
	for _, id := range ids {
		delete(ch.messages, id)
	}
	fields := map[string]any{"channel_id": ch.info.ID}
	if ch.guild != nil {
		fields["guild_id"] = ch.guild.id
	}
	name := "MESSAGE_DELETE_BULK"
	if fields["ids"] = ids; len(ids) == 1 {
		delete(fields, "ids")
		fields["id"], name = ids[0], "MESSAGE_DELETE"
	}
	if s.sees(ch) {
		s.emit(ch.intent(GuildMessages, DirectMessages), name, fields)
	}
	s.Notify()
}
