package webchat

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	maxHits    = 30
	maxExcerpt = 240 // bytes
	hitOffset  = 60  // of the first word in an excerpt, in bytes
)

// hit is a message that a search has found, as pages see it.
type hit struct {
	ID         int64         `json:"id"`
	Direction  msg.Direction `json:"direction"`
	Topic      string        `json:"topic"`
	SenderName string        `json:"sender_name"`
	Excerpt    string        `json:"excerpt"`
	Timestamp  int64         `json:"timestamp"`
}

// Search answers with the newest messages of the chat that have all words of a text.
func (c *Chat) Search(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	text := r.URL.Query().Get("text")
	match := store.SearchQuery(text)
	before, err := number(r.URL.Query().Get("before"), 0)
	if match == "" || err != nil {
		return apierr.New(apierr.BadRequest, "write a word to search for")
	}
	page, err := rows.ListMessages(r.Context(), c.Store.Reader,
		rows.MessageFilter{Match: match, Chat: JID(g.Folder), Before: before, Limit: maxHits})
	if errors.Is(err, rows.ErrTooBroad) {
		return apierr.New(apierr.BadRequest, "too many messages have these words; add another word")
	}
	if err != nil {
		return err
	}
	hits := []hit{}
	for _, m := range page.Rows {
		// Votes and copies, for example, are not on the page.
		shown, _, err := rows.WebHistory(r.Context(), c.Store.Reader, m.ChatJID, &m.Topic, m.ID+1, 1)
		if err != nil {
			return err
		}
		if len(shown) == 0 || shown[0].ID != m.ID {
			continue
		}
		if m.Direction == msg.Out {
			m.SenderName = cmp.Or(m.SenderName, c.Assistant)
		}
		hits = append(hits, hit{m.ID, m.Direction, m.Topic, m.SenderName, around(m.Content, text), m.Timestamp})
	}
	httpx.JSON(w, http.StatusOK, map[string]any{"messages": hits, "next": page.Next})
	return nil
}

// around returns the part of a text around the first of the words that were searched for, on one line.
func around(text, searched string) string {
	text = strings.Join(strings.Fields(text), " ")
	at, lower := 0, strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(searched)) {
		if i := strings.Index(lower, strings.Trim(word, `"*`)); i > hitOffset {
			at = min(i-hitOffset, len(text)) // the lower case may be longer
			break
		}
	}
	cut := strings.TrimSpace(strings.ToValidUTF8(upTo(text[at:], maxExcerpt), ""))
	if at > 0 {
		cut = "…" + cut
	}
	if at+maxExcerpt < len(text) {
		cut += "…"
	}
	return cut
}
