package webchat

import (
	"cmp"
	"errors"
	"net/http"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxHits is how many messages an answer to a search has.
const maxHits = 30

// Search answers with the newest messages of the chat that have all words of a text.
func (c *Chat) Search(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	match := store.SearchQuery(r.URL.Query().Get("text"))
	if match == "" {
		return apierr.New(apierr.BadRequest, "write a word to search for")
	}
	page, err := rows.ListMessages(r.Context(), c.Store.Reader,
		rows.MessageFilter{Match: match, Chat: JID(g.Folder), Limit: maxHits})
	if errors.Is(err, rows.ErrTooBroad) {
		return apierr.New(apierr.BadRequest, "too many messages have these words; add another word")
	}
	hits := []message{}
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
		hits = append(hits, message{ID: m.ID, Direction: m.Direction, Topic: m.Topic, Sender: m.Sender,
			SenderName: m.SenderName, Source: m.Source, Content: &m.Content, Timestamp: m.Timestamp})
	}
	if err == nil {
		httpx.JSON(w, http.StatusOK, map[string]any{"messages": hits, "more": page.Next != 0})
	}
	return err
}
