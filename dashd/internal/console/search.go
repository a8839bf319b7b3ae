package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/store"
)

const (
	maxHits          = 8  // of a kind
	maxFoundMessages = 20 // there is a page with all of them
)

// search finds groups, chats, senders and messages by words, and a turn and a message by their number.
func (c messagePages) search(r *http.Request) (*shown, error) {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	if len(text) > maxFilter {
		return nil, apierr.New(apierr.BadRequest, "The text is too long: at most %d bytes.", maxFilter)
	}
	page := pages.Search{Query: text, Messages: pages.Messages{Now: c.Now().UnixMilli(),
		Filter: pages.MessageFilter{Text: text}}}
	filter := rows.MessageFilter{Match: store.SearchQuery(text), Limit: maxFoundMessages}
	if filter.Match == "" {
		return &shown{data: page}, nil
	}
	if err := c.listInto(r, &page.Messages, filter); err != nil {
		return nil, err
	}
	if page.Messages.Next != "" {
		page.Messages.Next = messagesPath("text", text)
	}
	return &shown{data: &page}, c.findOthers(r.Context(), &page)
}

func messagesPath(name, value string) string {
	return "/messages?" + url.Values{name: {value}}.Encode()
}

// findOthers finds the turn and the message with a number, and groups, chats and senders by words.
func (c messagePages) findOthers(ctx context.Context, page *pages.Search) error {
	text := page.Query
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		if page.Turn, err = c.Store.Turn(ctx, id); err != nil {
			return err
		}
		if page.Message, err = c.Store.Message(ctx, id); err != nil {
			return err
		}
	}
	t, err := c.table(ctx)
	if err != nil {
		return err
	}
	for _, g := range t.groups {
		if contains(text, g.Folder, g.Name) && len(page.Groups) < maxHits {
			page.Groups = append(page.Groups, g)
		}
	}
	list, err := rows.ListChats(ctx, c.Store, rows.ChatFilter{Text: text, Limit: maxHits})
	if err != nil {
		return err
	}
	page.Chats, page.MoreChats = list.Rows, list.Next != nil
	page.Senders, err = rows.FindSenders(ctx, c.Store, text, maxHits)
	return err
}
