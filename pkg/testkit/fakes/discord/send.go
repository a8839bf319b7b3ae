package discord

import (
	"cmp"
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
	Content *string         `json:"content"`
	Nonce   json.RawMessage `json:"nonce"`
	Enforce bool            `json:"enforce_nonce"`
	Allowed *allowed        `json:"allowed_mentions"`
	Flags   *int            `json:"flags"`
	Poll    *pollRequest    `json:"poll"`
	// Components replace those of an edited message, nil keeps them.
	Components []json.RawMessage `json:"components"`
	Reference  *struct {
		MessageID       string `json:"message_id"`
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

// read parses and validates the body of a request that sends or edits a message.
func (o *outgoing) read(q *request) ([]Upload, error) {
	if err := q.decode(o); err != nil {
		return nil, err
	}
	return o.check(q)
}

// check validates the message of a request, and returns its files.
func (o *outgoing) check(q *request) ([]Upload, error) {
	files, err := q.files()
	if err != nil {
		return nil, err
	}
	if o.Content != nil {
		trimmed := strings.TrimSpace(*o.Content) // as Discord does
		o.Content, q.call.Text = &trimmed, trimmed
		if utf8.RuneCountInString(trimmed) > maxContent {
			return nil, tooLong("content", maxContent)
		}
	}
	return files, cmp.Or(o.Poll.check(), checkComponents(o.Components), o.allowed().check())
}

func (s *Server) createMessage(q *request, ch *channel) (any, error) {
	if err := s.writable(ch); err != nil {
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
	if len(files) > 0 && !s.may(ch, AttachFiles) || o.Poll != nil && !s.may(ch, SendPolls) {
		return nil, missingPermissions()
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

// sendFlags are the flags of a message that its sender sets; others are ignored.
const sendFlags = SuppressEmbeds | Ephemeral

// compose is the message of a request.
func (s *Server) compose(q *request, ch *channel, o *outgoing, files []Upload) (*Message, error) {
	m := &Message{Author: s.me, Nonce: o.Nonce, Content: q.call.Text, Components: o.Components}
	if o.Flags != nil {
		m.Flags = *o.Flags & sendFlags
	}
	if err := m.refer(q, ch, o); err != nil {
		return nil, err
	}
	if m.Content == "" && len(files) == 0 && o.Poll == nil {
		return nil, refuse(400, 50006, "Cannot send an empty message")
	}
	for _, u := range files {
		m.Attachments = append(m.Attachments, s.newAttachment(ch, File{Name: u.Name, Data: u.Data}))
	}
	if o.Poll != nil {
		m.Poll = o.Poll.open(s.now())
	}
	q.call.Pings = s.mark(ch, m, o.allowed())
	if answered := ch.messages[q.call.ReplyTo]; answered != nil && o.allowed().Replied &&
		answered.Author.ID != s.me.ID {
		q.call.Pings = append(q.call.Pings, answered.Author.Mention())
		s.mention(ch, m, answered.Author.ID)
	}
	return m, nil
}

// refer makes a message a reply.
func (m *Message) refer(q *request, ch *channel, o *outgoing) error {
	if o.Reference == nil {
		return nil
	}
	id := o.Reference.MessageID
	if _, ok := snowflake(id); !ok {
		return badSnowflake("message_reference.message_id", id)
	}
	of := ch.messages[id]
	switch {
	case of == nil && o.Reference.FailIfNotExists != nil && !*o.Reference.FailIfNotExists:
		return nil // an ordinary message
	case of == nil:
		return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	case of.isSystem():
		return invalid("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
	}
	m.answer(ch, of)
	q.call.ReplyTo = id
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
		EditedTimestamp: of.EditedTimestamp, Flags: of.Flags, Stickers: of.Stickers, Mentions: of.Mentions,
		MentionRoles: of.MentionRoles, Components: of.Components,
	}}}
}

// add adds a message to a channel: it sets its id and time, and makes its lists non-null. It
// unarchives a thread.
func (s *Server) add(ch *channel, m *Message) *Message {
	s.complete(ch, m)
	ch.messages[m.ID], ch.last = m, m.ID
	ch.sent++
	if ch.isThread() && ch.info.Metadata.Archived {
		s.archive(ch, false, ch.info.Metadata.Locked)
	}
	return m
}

// complete gives a message its id and time, and lists in place of nil ones.
func (s *Server) complete(ch *channel, m *Message) {
	if m.ID == "" {
		m.ID = s.newID()
	}
	m.ChannelID, m.Timestamp = ch.info.ID, s.now()
	fill(&m.Mentions)
	fill(&m.MentionRoles)
	fill(&m.Attachments)
	fill(&m.Embeds)
	fill(&m.Components)
}

// fill replaces a nil list by an empty one.
func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func (s *Server) editMessage(q *request, ch *channel, m *Message) (any, error) {
	var o outgoing
	_, err := o.read(q)
	switch {
	case err != nil:
		return nil, err
	case len(q.call.Files) > 0:
		return nil, invalid("files", "BASE_TYPE_BAD", "Files of an edit are not supported.") // by the fake
	case m.Author.ID != s.me.ID:
		return nil, refuse(403, 50005, "Cannot edit a message authored by another user")
	case m.Poll != nil:
		return nil, refuse(400, 520003, "Cannot edit a poll message")
	case ch.isThread() && (ch.info.Metadata.Archived || ch.info.Metadata.Locked):
		return nil, archived()
	}
	if err := s.change(ch, m, &o); err != nil {
		return nil, err
	}
	return s.inAnswer(ch, m), nil
}

// change replaces the fields of a message of the bot that a request names.
func (s *Server) change(ch *channel, m *Message, o *outgoing) error {
	content := m.Content
	if o.Content != nil {
		content = *o.Content
	}
	if content == "" && len(m.Attachments) == 0 {
		return refuse(400, 50006, "Cannot send an empty message")
	}
	if m.Content = content; o.Flags != nil {
		m.Flags = m.Flags&^SuppressEmbeds | *o.Flags&SuppressEmbeds
	}
	if o.Components != nil {
		m.Components = o.Components
	}
	s.mark(ch, m, o.allowed()) // an edit does not notify
	s.edited(ch, m)
	return nil
}

// edited emits the edit of a message.
func (s *Server) edited(ch *channel, m *Message) {
	at := s.now()
	m.EditedTimestamp = &at
	s.emitMessage("MESSAGE_UPDATE", ch, m)
}

func (s *Server) deleteMessage(_ *request, ch *channel, m *Message) (any, error) {
	switch {
	case ch.isThread() && ch.info.Metadata.Archived:
		return nil, archived()
	case m.Author.ID == s.me.ID:
		s.remove(ch, m.ID)
		return nil, nil
	case ch.guild == nil:
		return nil, notInPrivate()
	}
	return nil, missingPermissions()
}

// remove deletes messages, and emits one event, for several a bulk one.
func (s *Server) remove(ch *channel, ids ...string) {
	for _, id := range ids {
		delete(ch.messages, id)
		delete(ch.reactions, id)
	}
	name, event := "MESSAGE_DELETE", map[string]any{"id": ids[0]}
	if len(ids) > 1 {
		name, event = "MESSAGE_DELETE_BULK", map[string]any{"ids": ids}
	}
	s.emitOf(ch, ch.intent(GuildMessages, DirectMessages), name, event)
}
