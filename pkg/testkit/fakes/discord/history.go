package discord

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// snapshot is a copy of a message, which later changes do not affect.
func (m *Message) snapshot() Message {
	c := *m
	c.Mentions, c.Embeds, c.Attachments = slices.Clone(m.Mentions), slices.Clone(m.Embeds), slices.Clone(m.Attachments)
	if m.Poll != nil {
		c.Poll = m.Poll.copied()
	}
	return c
}

// shown is a copy of a message, whose files can be downloaded from now on.
func (s *Server) shown(m *Message) Message {
	c := m.snapshot()
	c.Attachments, c.Snapshots = s.sign(c.Attachments), slices.Clone(c.Snapshots)
	for i := range c.Snapshots {
		c.Snapshots[i].Message.Attachments = s.sign(c.Snapshots[i].Message.Attachments)
	}
	return c
}

// inAnswer is a message as in answers: with its reactions and the message to which it replies.
func (s *Server) inAnswer(ch *channel, m *Message) Message {
	c := s.shown(m)
	c.Reactions = ch.counts(m.ID, s.me.ID)
	if m.Type == ReplyMessage {
		c.Referenced = json.RawMessage("null")
		if of := ch.messages[m.Reference.MessageID]; of != nil {
			c.Referenced = s.quoted(of)
		}
	}
	if m.Type == ThreadStarter && ch.parent != nil {
		if of := ch.parent.messages[m.Reference.MessageID]; of != nil {
			c.Referenced = s.quoted(of)
		}
	}
	return c
}

// quoted is a message as another contains it: without the message to which it replies itself.
func (s *Server) quoted(of *Message) json.RawMessage {
	raw, _ := json.Marshal(s.shown(of)) // the fake's own types
	return raw
}

// inEvent is a message as in events: with its guild, and its author as a member.
func (s *Server) inEvent(ch *channel, m *Message) Message {
	c, kind := s.inAnswer(ch, m), ch.info.Type
	c.ChannelType = &kind
	if ch.guild != nil {
		c.GuildID = ch.guild.id
		if m.WebhookID == "" {
			c.Member = ch.guild.bare(m.Author.ID)
		}
	}
	return c
}

// getMessages answers with the newest first, without nonces: those next after an id, or else the newest of all.
func (s *Server) getMessages(q *request, ch *channel) (any, error) {
	const mostMessages, usualMessages = 100, 50
	limit, err := q.number("limit", usualMessages, 1, mostMessages)
	if err != nil {
		return nil, err
	}
	if q.query.Has("before") || q.query.Has("around") {
		return nil, invalid("before", "BASE_TYPE_BAD", "Only after is supported.") // by the fake
	}
	after, err := q.snowflake("after")
	if err != nil {
		return nil, err
	}
	found := []Message{}
	if !s.may(ch, ReadMessageHistory) {
		return found, nil
	}
	all := ch.sorted()
	if after != "" {
		all = slices.DeleteFunc(all, func(m *Message) bool { return compareIDs(m.ID, after) <= 0 })
		all = all[:min(limit, len(all))]
	}
	for _, m := range slices.Backward(all[max(len(all)-limit, 0):]) {
		c := s.inAnswer(ch, m)
		c.Nonce = nil
		found = append(found, s.visible(c, ch.guild != nil, ^s.denied))
	}
	return found, nil
}

func (s *Server) getMessage(_ *request, ch *channel, m *Message) (any, error) {
	c := s.inAnswer(ch, m)
	c.Nonce = nil
	return s.visible(c, ch.guild != nil, ^s.denied), nil
}

// Dimensions and durations are made up: the fake does not decode media.
const (
	madeUpWidth   = 640
	madeUpHeight  = 480
	madeUpSeconds = 3
)

// File is a file that a user sends.
type File struct {
	Name  string
	MIME  string // guessed from the name's extension, or the content, if empty
	Data  []byte
	Size  int64 // in bytes; of Data if 0, and may be more
	Voice bool  // a voice message, which has no other content
}

// file is the file of an attachment.
type file struct {
	name string
	mime string
	data []byte
	path string
}

// signedFor is how long the URL of a file is valid. Discord sends a fresh one with each message that shows the file.
const signedFor = 24 * time.Hour

// signed is the URL of a file that is valid from now on.
func (s *Server) signed(path string) string {
	until := strconv.FormatInt(s.now().Add(signedFor).Unix(), 16)
	return s.Base() + path + "?ex=" + until + "&is=60000000&hm=" + s.signature(path, until) + "&"
}

func (s *Server) signature(path, until string) string {
	sum := sha256.Sum256([]byte(s.token + path + until))
	return hex.EncodeToString(sum[:])
}

// isSigned reports whether a URL is one of signed, and still valid.
func (s *Server) isSigned(u *url.URL) bool {
	until := u.Query().Get("ex")
	at, err := strconv.ParseInt(until, 16, 64)
	return err == nil && s.now().Unix() < at && u.Query().Get("hm") == s.signature(u.EscapedPath(), until)
}

// sign makes the URLs of attachments valid from now on.
func (s *Server) sign(attachments []Attachment) []Attachment {
	fresh := slices.Clone(attachments)
	for i := range fresh {
		if kept := s.files[fresh[i].ID]; kept != nil {
			fresh[i].URL = s.signed(kept.path)
			fresh[i].ProxyURL = fresh[i].URL
		}
	}
	return fresh
}

// newAttachment stores a file, and signs its URL.
func (s *Server) newAttachment(ch *channel, f File) Attachment {
	id := s.newID()
	name := cmp.Or(path.Base(f.Name), "unknown")
	kept := &file{
		name: name, mime: cmp.Or(f.MIME, mime.TypeByExtension(path.Ext(name)), http.DetectContentType(f.Data)),
		data: f.Data,
		path: "/attachments/" + ch.info.ID + "/" + id + "/" + url.PathEscape(name),
	}
	s.files[id] = kept
	address := s.signed(kept.path)
	a := Attachment{
		ID: id, Filename: name, ContentType: kept.mime,
		Size: max(f.Size, int64(len(f.Data))),
		URL:  address, ProxyURL: address,
	}
	if strings.HasPrefix(kept.mime, "image/") {
		a.Width, a.Height = madeUpWidth, madeUpHeight
	}
	if f.Voice {
		a.Seconds, a.Waveform = madeUpSeconds, "AAAA"
	}
	return a
}

// download answers the URL of an attachment, which needs no token.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	f := s.NextFault(Download)
	s.Hold(r.Context(), f.Delay)
	if f.answer(w) {
		return
	}
	s.mu.Lock()
	found := s.files[r.PathValue("attachment")]
	s.mu.Unlock()
	if found == nil || found.path != r.URL.EscapedPath() || !s.isSigned(r.URL) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("This content is no longer available."))
		return
	}
	w.Header().Set("Content-Type", found.mime)
	_, _ = w.Write(found.data)
}

// FileByID is the content of an attachment, for the page.
func (s *Server) FileByID(id string) (name, contentType string, data []byte, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if f == nil {
		return "", "", nil, false
	}
	return f.name, f.mime, f.data, true
}
