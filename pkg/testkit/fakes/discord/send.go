package discord

import (
	"encoding/json"
	"fmt"
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
	// Components replace those of an edited message, nil keeps them.
	Components []json.RawMessage `json:"components"`
	Reference  *struct {
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
	if err := checkComponents(o.Components); err != nil {
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
	if err := s.mayAttach(ch, &o, files); err != nil {
		return nil, err
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

// mayAttach refuses files and polls that the bot may not send.
func (s *Server) mayAttach(ch *channel, o *outgoing, files []Upload) error {
	if len(files) > 0 && !s.may(ch, AttachFiles) || o.Poll != nil && !s.may(ch, SendPolls) {
		return missingPermissions()
	}
	return nil
}

// sendFlags are the flags of a message that its sender sets; others are ignored.
const sendFlags = SuppressEmbeds | Ephemeral | SuppressNotifications | IsVoiceMessage

// compose is the message of a request.
func (s *Server) compose(q *request, ch *channel, o *outgoing, files []Upload) (*Message, error) {
	m := &Message{Author: s.me, Nonce: o.Nonce, TTS: o.TTS, Embeds: o.Embeds, Content: q.call.Text,
		Components: o.Components}
	if o.Flags != nil {
		m.Flags = *o.Flags & sendFlags
	}
	if err := s.refer(q, ch, o, m); err != nil {
		return nil, err
	}
	switch {
	case m.Content == "" && len(m.Embeds)+len(files)+len(m.Snapshots)+len(o.Stickers) == 0 && o.Poll == nil:
		return nil, refuse(400, 50006, "Cannot send an empty message")
	}
	for _, u := range files {
		m.Attachments = append(m.Attachments, s.newAttachment(ch,
			File{Name: u.Name, Data: u.Data, Description: o.describe(u)}))
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
		return invalid("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE",
			"Cannot reply to a system message")
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
		EditedTimestamp: of.EditedTimestamp, Flags: of.Flags, Stickers: of.Stickers, Mentions: of.Mentions,
		MentionRoles: of.MentionRoles,
		Components:   of.Components,
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

// complete gives a message what all have.
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
	if err := s.change(ch, m, &o, files); err != nil {
		return nil, err
	}
	return s.inAnswer(ch, m), nil
}

// change replaces what a request names of a message of the bot.
func (s *Server) change(ch *channel, m *Message, o *outgoing, files []Upload) error {
	content, embeds := m.Content, m.Embeds
	if o.Content != nil {
		content = *o.Content
	}
	if o.Embeds != nil {
		embeds = o.Embeds
	}
	kept := m.Attachments
	if o.Attachments != nil {
		kept = slices.DeleteFunc(slices.Clone(kept), func(a Attachment) bool { return !o.keeps(a) })
	}
	if content == "" && len(embeds)+len(kept)+len(files) == 0 {
		return refuse(400, 50006, "Cannot send an empty message")
	}
	m.Attachments = slices.Clone(kept)
	for _, u := range files {
		m.Attachments = append(m.Attachments, s.newAttachment(ch,
			File{Name: u.Name, Data: u.Data, Description: o.describe(u)}))
	}
	if m.Content, m.Embeds = content, embeds; o.Flags != nil {
		m.Flags = m.Flags&^SuppressEmbeds | *o.Flags&SuppressEmbeds
	}
	if o.Components != nil {
		m.Components = o.Components
	}
	s.mark(ch, m, o.allowed()) // an edit does not notify
	s.edited(ch, m)
	return nil
}

// edited emits the edit of a message. An ephemeral one is in no channel. What comes in place of the notice that the bot
// is thinking is no edit.
func (s *Server) edited(ch *channel, m *Message) {
	if at := s.now(); m.Flags&Loading == 0 {
		m.EditedTimestamp = &at
	}
	m.Flags &^= Loading
	if ch.messages[m.ID] != nil {
		s.emitMessage("MESSAGE_UPDATE", ch, m)
	}
}

func (s *Server) deleteMessage(q *request) (any, error) {
	ch, m, err := s.message(q)
	switch {
	case err != nil:
		return nil, err
	case ch.isThread() && ch.info.Metadata.Archived:
		return nil, archived()
	case m.Author.ID == s.me.ID:
	case ch.guild == nil:
		return nil, notInPrivate()
	case !s.may(ch, ManageMessages):
		return nil, missingPermissions()
	}
	s.remove(ch, m.ID)
	return nil, nil
}

func notInPrivate() error { return refuse(403, 50003, "Cannot execute action on a DM channel") }

// The documented limits of BulkDelete.
const (
	minBulk    = 2
	maxBulk    = 100
	maxBulkAge = 14 * 24 * time.Hour
)

// bulkDelete deletes messages that are not too old. Those that do not exist are ignored.
func (s *Server) bulkDelete(q *request) (any, error) {
	ch, err := s.readable(q)
	if err != nil {
		return nil, err
	}
	var body struct {
		Messages []string `json:"messages"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	ids := body.Messages
	switch {
	case ch.guild == nil:
		return nil, notInPrivate()
	case !s.may(ch, ManageMessages):
		return nil, missingPermissions()
	case len(ids) < minBulk || len(ids) > maxBulk:
		return nil, refuse(400, 50016,
			"Provided too few or too many messages to delete. Must provide at least 2 and fewer than 100 messages to delete")
	}
	var present []string
	for i, id := range ids {
		_, ok := snowflake(id)
		switch {
		case !ok:
			return nil, badSnowflake(fmt.Sprintf("messages.%d", i), id)
		case slices.Contains(ids[:i], id):
			return nil, invalid("messages", "SET_TYPE_ALREADY_CONTAINS_VALUE", "The set already contains this value")
		case s.clock().Sub(madeAt(id)) > maxBulkAge:
			return nil, refuse(400, 50034, "You can only bulk delete messages that are under 14 days old.")
		case ch.messages[id] != nil:
			present = append(present, id)
		}
	}
	if len(present) > 0 {
		s.removeBulk(ch, present)
	}
	return nil, nil
}

// madeAt is when an object with an id was made.
func madeAt(id string) time.Time {
	n, _ := snowflake(id) // a valid one
	return time.UnixMilli(int64(n>>22) + epoch)
}

// remove deletes messages, and emits one event, for several a bulk one.
func (s *Server) remove(ch *channel, ids ...string) {
	if len(ids) > 1 {
		s.removeBulk(ch, ids)
		return
	}
	ch.forget(ids[0])
	s.emitOf(ch, ch.intent(GuildMessages, DirectMessages), "MESSAGE_DELETE", map[string]any{"id": ids[0]})
}

// removeBulk deletes messages, and emits a bulk event even for one.
func (s *Server) removeBulk(ch *channel, ids []string) {
	for _, id := range ids {
		ch.forget(id)
	}
	s.emitOf(ch, ch.intent(GuildMessages, DirectMessages), "MESSAGE_DELETE_BULK", map[string]any{"ids": ids})
}

// forget deletes what a channel has of a message.
func (ch *channel) forget(id string) {
	delete(ch.messages, id)
	delete(ch.reactions, id)
	ch.pins = slices.DeleteFunc(ch.pins, func(p pin) bool { return p.id == id })
}
