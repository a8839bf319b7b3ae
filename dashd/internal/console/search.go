package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
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
	err := c.findNumber(r.Context(), &page)
	if err == nil {
		err = c.findNames(r.Context(), &page)
	}
	return &shown{data: page}, err
}

func messagesPath(name, value string) string {
	return "/messages?" + url.Values{name: {value}}.Encode()
}

// number returns the id that a text is, or 0.
func number(text string) (id int64) {
	id, _ = strconv.ParseInt(text, 10, 64) // 0 after an error
	return id
}

func (c messagePages) findNumber(ctx context.Context, page *pages.Search) error {
	id := number(page.Query)
	if id == 0 {
		return nil
	}
	s := pages.SearchSection{Title: "By number"}
	turn, err := c.Store.Turn(ctx, id)
	if turn != nil {
		s.Hits = append(s.Hits, pages.Hit{Path: turnPath(id), JID: turn.ChatJID, Text: fmt.Sprintf("Turn %d", id),
			Detail: turn.Folder + ", " + cmp.Or(turn.Reason.Words(), string(turn.State))})
	}
	if err != nil {
		return err
	}
	m, err := c.Store.Message(ctx, id)
	if m != nil {
		s.Hits = append(s.Hits, pages.Hit{Path: fmt.Sprintf("/messages/%d", id), JID: m.ChatJID,
			Text: fmt.Sprintf("Message %d", id), Detail: pages.Content(m)})
	}
	page.Sections = append(page.Sections, s)
	return err
}

// findNames finds groups, chats and senders.
func (c messagePages) findNames(ctx context.Context, page *pages.Search) error {
	text := page.Query
	groups, chats, senders := pages.SearchSection{Title: "Groups"}, pages.SearchSection{Title: "Chats"},
		pages.SearchSection{Title: "Senders"}
	t, err := c.table(ctx)
	if err != nil {
		return err
	}
	for _, g := range t.groups {
		if contains(text, g.Folder, g.Name) && len(groups.Hits) < maxHits {
			groups.Hits = append(groups.Hits, pages.Hit{Path: groupPath(g.Folder), JID: msg.GroupJID(g.Folder),
				Text: g.Folder, Detail: g.Name})
		}
	}
	list, err := rows.ListChats(ctx, c.Store, rows.ChatFilter{Text: text, Limit: maxHits})
	if err != nil {
		return err
	}
	for _, each := range list.Rows {
		chats.Hits = append(chats.Hits, pages.Hit{Path: pages.ChatPath(each.JID), JID: each.JID,
			Text: cmp.Or(each.Title, each.JID), Detail: each.JID})
	}
	if list.Next != nil {
		chats.All = "/chats?" + url.Values{"text": {text}}.Encode()
	}
	found, err := rows.FindSenders(ctx, c.Store, text, maxHits)
	for _, p := range found {
		senders.Hits = append(senders.Hits, pages.Hit{Path: pages.PersonPath(p.ID), JID: p.ID,
			Text: cmp.Or(p.Name, p.ID), Detail: p.ID})
	}
	page.Sections = append(page.Sections, groups, chats, senders)
	return err
}
