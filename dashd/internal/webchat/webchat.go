// Package webchat is the web chat: the adapter of the platform "web", whose rooms are groups.
// A page writes messages and reads them back as rows. All state is in rows, so nothing is lost when
// a page, or dashd, is restarted.
package webchat

import (
	"cmp"
	"context"
	"crypto/rand"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"arizuko/dashd/internal/live"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxText is more than users type, in bytes, and fits in one turn.
	maxText     = 200 << 10
	maxClientID = 100
	maxTitle    = 100 // characters
)

// Platform delivers to the web chat: a row is readable by every page as soon as its delivery
// is recorded, so there is nothing to send, and nothing that can fail.
type Platform struct{}

// page is the only part of a row.
type page struct{}

// Repeatable implements adapter.Repeatable.
func (page) Repeatable() bool { return true }

// Cut leaves a row in one piece.
func (Platform) Cut(*msg.Message) ([]adapter.Part, error) { return []adapter.Part{page{}}, nil }

// Send gives a row its own id as the platform's.
func (Platform) Send(_ context.Context, m *msg.Message, _ adapter.Part) (string, error) {
	return strconv.FormatInt(m.ID, 10), nil
}

// Chat serves the API of the web chat.
type Chat struct {
	Store *store.Store
	Shell *adapter.Shell
	Hub   *live.Hub
	Files *adapter.Uploads // that pages send
	Data  string           // the data folder
	// Assistant is the name shown for outbound rows without one, such as notices.
	Assistant string
	// Sender returns the sender of a request's message.
	Sender func(*http.Request) (sender, name string)
}

// JID returns the address of a group's web chat.
func JID(folder string) string { return msg.PlatformWeb + ":" + folder }

// posted is a message as a page sends it.
type posted struct {
	Text     string `json:"text"`
	Topic    string `json:"topic"`
	ClientID string `json:"client_id"` // makes a repeat the same row
}

// Post stores a message of a page: JSON, or a form with files.
func (c *Chat) Post(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		return c.postForm(w, r, g)
	}
	p, err := httpx.Decode[posted](r)
	if err != nil {
		return err
	}
	if err := p.check(0); err != nil {
		return err
	}
	return c.accept(w, r, g, p.message(nil), "the message could not be stored; send it again")
}

func (p *posted) message(files []msg.Attachment) *msg.Message {
	return &msg.Message{PlatformID: p.platformID(), Content: p.Text, Topic: p.Topic, Attachments: files}
}

// accept stores a message, a vote or an answer of a page, and answers with its row.
func (c *Chat) accept(w http.ResponseWriter, r *http.Request, g *msg.Group, m *msg.Message, failed string) error {
	if err := c.receive(r, g, m, failed); err != nil {
		return err
	}
	httpx.JSON(w, http.StatusAccepted, map[string]int64{"id": m.ID})
	return nil
}

// receive stores a message. It sets the message's row, which may also be there if it fails.
func (c *Chat) receive(r *http.Request, g *msg.Group, m *msg.Message, failed string) error {
	m.ChatJID = JID(g.Folder)
	m.Sender, m.SenderName = c.Sender(r)
	err := c.Shell.Receive(r.Context(), adapter.Inbound{
		Messages: []*msg.Message{m},
		Chats:    []msg.Chat{{JID: m.ChatJID, Kind: msg.ChatWeb, Title: g.Name}},
	})
	if err != nil {
		c.Shell.Log.Error("storing message failed", "chat", m.ChatJID, "verb", m.Verb, "err", err)
		return apierr.New(apierr.Unavailable, "%s", failed)
	}
	c.Hub.Notify()
	return nil
}

// check returns the problem of a message that has so many files.
func (p *posted) check(files int) error {
	if p.Topic != "" && !strings.HasPrefix(p.Topic, msg.TopicSigil) {
		p.Topic = msg.TopicSigil + p.Topic
	}
	switch {
	case strings.TrimSpace(p.Text) == "" && files == 0:
		return apierr.New(apierr.BadRequest, "text: is empty")
	case len(p.Text) > maxText:
		return apierr.New(apierr.BadRequest, "text: has more than %d bytes", maxText)
	case !msg.ValidTopic(p.Topic):
		return apierr.New(apierr.BadRequest, "topic: %.80q is none: write %s", p.Topic, msg.TopicRule)
	case len(p.ClientID) > maxClientID || strings.ContainsFunc(p.ClientID, unprintable):
		return apierr.New(apierr.BadRequest, "client_id: must be at most %d printable characters", maxClientID)
	}
	return nil
}

func unprintable(c rune) bool { return c == utf8.RuneError || !unicode.IsGraphic(c) }

// platformID returns the message's id on the platform, which is the page. Unlike those of outbound
// rows it is not a row id.
func (p *posted) platformID() string {
	if p.ClientID == "" {
		return "r:" + rand.Text()
	}
	return "c:" + p.ClientID
}

// Topics answers with the chat's topics, the one used last first; the default one is always among
// them.
func (c *Chat) Topics(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	stored, err := rows.WebTopics(r.Context(), c.Store.Reader, JID(g.Folder))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(stored, func(t rows.WebTopic) bool { return t.Topic == "" }) {
		stored = append(stored, rows.WebTopic{})
	}
	slices.SortFunc(stored, func(a, b rows.WebTopic) int { return cmp.Compare(b.LastID, a.LastID) })
	httpx.JSON(w, http.StatusOK, map[string]any{"topics": stored})
	return nil
}

// EditTopic renames a topic, "" for its own name, and puts it away until its next message or takes it back.
func (c *Chat) EditTopic(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	p, err := httpx.Decode[rows.WebTopic](r)
	if err != nil {
		return err
	}
	title := strings.Join(strings.Fields(p.Title), " ")
	if utf8.RuneCountInString(title) > maxTitle || strings.ContainsFunc(title, func(c rune) bool {
		return unprintable(c) && c != '\u200c' && c != '\u200d' // as in emoji and in Persian
	}) {
		return apierr.New(apierr.BadRequest, "title: must be at most %d printable characters", maxTitle)
	}
	if p.Archived && p.Topic == "" {
		return apierr.New(apierr.BadRequest, "archived: the main topic stays")
	}
	stored, err := rows.WebTopics(r.Context(), c.Store.Reader, JID(g.Folder))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(stored, func(t rows.WebTopic) bool { return t.Topic == p.Topic })
	switch {
	case at >= 0:
	case p.Archived:
		return apierr.New(apierr.Conflict, "The topic has no message yet.")
	case !msg.ValidTopic(p.Topic):
		return apierr.New(apierr.BadRequest, "topic: %.80q is none: write %s", p.Topic, msg.TopicRule)
	}
	through := int64(0)
	if p.Archived {
		through = stored[at].LastID
	}
	err = c.Store.Write(r.Context(), func(tx *store.Tx) error {
		return rows.PutWebTopic(tx, JID(g.Folder), p.Topic, title, through)
	})
	if err == nil {
		httpx.JSON(w, http.StatusOK, map[string]string{"title": title})
	}
	return err
}
