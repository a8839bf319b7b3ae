package slack

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Lengths are in characters.
const (
	maxText     = 40_000
	warnText    = 4_000 // longer ones are posted with a warning
	maxUpdate   = 4_000 // of chat.update
	maxBlocks   = 50
	maxMetadata = 3_000 // bytes
)

type posted struct {
	OK       bool              `json:"ok"`
	Channel  string            `json:"channel"`
	TS       string            `json:"ts"`
	Text     string            `json:"text,omitempty"` // of chat.update
	Message  *Message          `json:"message,omitempty"`
	Warning  string            `json:"warning,omitempty"`
	Metadata *responseMetadata `json:"response_metadata,omitempty"`
}

type responseMetadata struct {
	NextCursor string   `json:"next_cursor"`
	Warnings   []string `json:"warnings,omitempty"`
}

// content adds the text, blocks and attachments of a request to a message.
func (p params) content(m *Message, limit int) error {
	m.Text = p.str("text")
	if err := p.array("blocks", "invalid_blocks_format", &m.Blocks); err != nil {
		return err
	}
	if err := p.array("attachments", "invalid_attachments", &m.Attachments); err != nil {
		return err
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Blocks, &blocks) // array has validated it
	inAttachments := m.attachedBlocks()
	switch {
	case m.Text == "" && m.Blocks == nil && m.Attachments == nil:
		return errorCode("no_text")
	case utf8.RuneCountInString(m.Text) > limit:
		return errorCode("msg_too_long")
	case len(blocks) > maxBlocks:
		return errorCode("invalid_blocks")
	case checkBlocks(inAttachments) != nil:
		return errorCode("invalid_attachments")
	}
	return checkBlocks(blocks)
}

// array is a parameter with a JSON array; nil for an empty one.
func (p params) array(name, refusal string, into *json.RawMessage) error {
	var list []json.RawMessage
	found, valid := p.json(name, &list)
	switch {
	case !valid:
		return errorCode(refusal)
	case found && len(list) > 0:
		*into = json.RawMessage(p.str(name))
	}
	return nil
}

func (p params) metadata() (*Metadata, error) {
	var m Metadata
	found, valid := p.json("metadata", &m)
	switch {
	case !found:
		return nil, nil
	case !valid || m.Type == "" || !bytes.HasPrefix(bytes.TrimSpace(m.Payload), []byte("{")):
		return nil, errorCode("invalid_metadata_format")
	case len(p.str("metadata")) > maxMetadata:
		return nil, errorCode("metadata_too_large")
	}
	return &m, nil
}

// bot makes the bot the author of a message.
func (s *Server) bot(m *Message) *Message {
	m.User, m.Team = s.me.ID, teamID
	m.by(s.me)
	return m
}

func (s *Server) postMessage(p params) (any, error) {
	r, err := s.writable(p.str("channel"))
	if err != nil {
		return nil, err
	}
	m := &Message{}
	if err := p.content(m, maxText); err != nil {
		return nil, err
	}
	if m.Metadata, err = p.metadata(); err != nil {
		return nil, err
	}
	thread := p.str("thread_ts")
	if thread != "" {
		switch root := r.root(thread); {
		case root == nil:
			return nil, errorCode("thread_not_found")
		case root.isLocked:
			return nil, errorCode("restricted_action_thread_locked")
		}
	}
	if thread != "" && p.bool("reply_broadcast") {
		m.Subtype = "thread_broadcast"
	}
	s.say(r, s.bot(m), thread)
	shown := m.bare()
	answer := posted{OK: true, Channel: r.ID, TS: m.TS, Message: &shown}
	if utf8.RuneCountInString(m.Text) > warnText {
		answer.Warning = "message_truncated"
		answer.Metadata = &responseMetadata{Warnings: []string{"message_truncated"}}
	}
	return answer, nil
}

// say adds a message, and emits it.
func (s *Server) say(r *room, m *Message, threadTS string) {
	s.add(r, m, threadTS)
	if m.User == s.me.ID && s.status(m.ThreadTS) != "" {
		s.noteStatus(m.ThreadTS, "")
	}
	s.emitMessage(r, m)
}

func (s *Server) postEphemeral(p params) (any, error) {
	r, err := s.writable(p.str("channel"))
	if err != nil {
		return nil, err
	}
	m := &Message{Type: "message", IsEphemeral: true}
	if err := p.content(m, maxText); err != nil {
		return nil, err
	}
	if to, known := s.users[p.str("user")]; !known || !r.in(to) {
		return nil, errorCode("user_not_in_channel")
	}
	m.TS, m.ThreadTS = s.nextTS(), p.str("thread_ts")
	r.ephemeral = append(r.ephemeral, *s.bot(m))
	return fields{"message_ts": m.TS}.ok(), nil
}

// own is the message of a request, which must be the bot's.
func (s *Server) own(p params, refusal string) (*room, *Message, error) {
	r, err := s.writable(p.str("channel"))
	if err != nil {
		return nil, nil, err
	}
	m := r.find(p.str("ts"))
	switch {
	case m == nil || m.isTombstoned:
		return nil, nil, errorCode("message_not_found")
	case m.User != s.me.ID && m.BotID != s.me.BotID:
		return nil, nil, errorCode(refusal)
	}
	return r, m, nil
}

func (s *Server) updateMessage(p params) (any, error) {
	r, m, err := s.own(p, "cant_update_message")
	if err != nil {
		return nil, err
	}
	if m.stream.open() { // not documented: the worse case
		return nil, errorCode("streaming_message_not_updatable")
	}
	next := &Message{}
	if err := p.content(next, maxUpdate); err != nil {
		return nil, err
	}
	metadata, err := p.metadata()
	if err != nil {
		return nil, err
	}
	if next.Metadata = metadata; metadata == nil {
		next.Metadata = m.Metadata
	}
	if p.str("blocks") == "" { // only an empty list takes them away
		next.Blocks = m.Blocks
	}
	if p.str("attachments") == "" { // the same
		next.Attachments = m.Attachments
	}
	s.replace(r, m, next)
	shown := m.snapshot()
	return posted{OK: true, Channel: r.ID, TS: m.TS, Text: m.Text, Message: &shown}, nil
}

// replace replaces the contents of a message of the bot by those of another, and emits that.
func (s *Server) replace(r *room, m, next *Message) {
	before := m.snapshot()
	m.Text, m.Blocks, m.Attachments, m.Metadata = next.Text, next.Blocks, next.Attachments, next.Metadata
	m.stream, m.Streaming = nil, ""
	m.Edited = &Edited{User: s.me.ID, TS: s.nextTS()}
	s.emitChanged(r, m, before)
}

func (s *Server) deleteMessage(p params) (any, error) {
	r, m, err := s.own(p, "cant_delete_message")
	switch {
	case err != nil:
		return nil, err
	case m.stream.open(): // as for updates
		return nil, errorCode("cant_delete_message")
	}
	s.delete(r, m)
	return posted{OK: true, Channel: r.ID, TS: m.TS}, nil
}

// delete deletes a message, and emits that.
func (s *Server) delete(r *room, m *Message) {
	before := m.snapshot()
	if r.remove(m) {
		s.emitChanged(r, m, before)
		return
	}
	s.emitDeleted(r, before)
}

var pingForms = regexp.MustCompile(`<!(?:channel|here|everyone|group)(?:[|^][^>]*)?>|<@[UW][A-Z0-9]+(?:\|[^>]*)?>|<!subteam\^[^>]*>`)

// pings are the mentions of a request that notify users, as written.
func pings(p params) []string {
	all := pingForms.FindAllString(p.str("text")+p.str("initial_comment")+p.str("markdown_text"), -1)
	for _, name := range []string{"blocks", "attachments", "chunks"} {
		var list any // JSON may write the brackets as escapes
		_, _ = p.json(name, &list)
		all = append(all, pingForms.FindAllString(strings.Join(strs(list), " "), -1)...)
	}
	if p.str("parse") == "full" || p.bool("link_names") {
		all = append(all, bareForms.FindAllString(p.str("text"), -1)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var bareForms = regexp.MustCompile(`@(?:channel|here|everyone)\b`)

// strs are all strings in a JSON value.
func strs(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, each := range v {
			all = append(all, strs(each)...)
		}
	case map[string]any:
		for _, each := range v {
			all = append(all, strs(each)...)
		}
	}
	return all
}
