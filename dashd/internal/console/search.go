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

// search finds groups, chats, people and messages by words, and a turn and a message by their number.
func (c messagePages) search(r *http.Request) (*shown, error) {
	ctx, text := r.Context(), strings.TrimSpace(r.URL.Query().Get("q"))
	if len(text) > maxFilter {
		return nil, apierr.New(apierr.BadRequest, "The text is too long: at most %d bytes.", maxFilter)
	}
	page := pages.Search{Query: text}
	if text == "" {
		return &shown{data: page}, nil
	}
	for _, find := range []func(context.Context, string) (pages.SearchSection, error){c.findNumber, c.findGroups,
		c.findChats, c.findPeople} {
		found, err := find(ctx, text)
		if err != nil {
			return nil, err
		}
		if len(found.Hits) > 0 {
			page.Sections = append(page.Sections, found)
		}
	}
	page.Messages = pages.Messages{Now: c.Now().UnixMilli(), Filter: pages.MessageFilter{Text: text}}
	filter := rows.MessageFilter{Match: store.SearchQuery(text), Limit: maxFoundMessages}
	if filter.Match != "" {
		if err := c.listInto(r, &page.Messages, filter); err != nil {
			return nil, err
		}
	}
	if page.Messages.Next != "" {
		page.Messages.Next = "/messages?" + url.Values{"text": {text}}.Encode()
	}
	return &shown{data: page}, nil
}

func (c messagePages) findNumber(ctx context.Context, text string) (s pages.SearchSection, err error) {
	s.Title = "By number"
	id, invalid := strconv.ParseInt(strings.TrimPrefix(text, "#"), 10, 64)
	if invalid != nil {
		return s, nil
	}
	turn, err := c.Store.Turn(ctx, id)
	if turn != nil {
		s.Hits = append(s.Hits, pages.Hit{Path: turnPath(id), JID: turn.ChatJID, Text: fmt.Sprintf("Turn %d", id),
			Detail: turn.Folder + ", " + cmp.Or(turn.Reason.Words(), string(turn.State))})
	}
	if err != nil {
		return s, err
	}
	m, err := c.Store.Message(ctx, id)
	if m != nil {
		s.Hits = append(s.Hits, pages.Hit{Path: fmt.Sprintf("/messages/%d", id), JID: m.ChatJID,
			Text: fmt.Sprintf("Message %d", id), Detail: pages.Content(m)})
	}
	return s, err
}

func (c messagePages) findGroups(ctx context.Context, text string) (s pages.SearchSection, err error) {
	t, err := c.table(ctx)
	if err != nil {
		return s, err
	}
	s.Title = "Groups"
	for _, g := range t.groups {
		if contains(text, g.Folder, g.Name) && len(s.Hits) < maxHits {
			s.Hits = append(s.Hits, pages.Hit{Path: groupPath(g.Folder), JID: msg.GroupJID(g.Folder), Text: g.Folder,
				Detail: g.Name})
		}
	}
	return s, nil
}

func (c messagePages) findChats(ctx context.Context, text string) (s pages.SearchSection, err error) {
	s.Title = "Chats"
	found, err := rows.ListChats(ctx, c.Store, rows.ChatFilter{Text: text, Limit: maxHits})
	for _, chat := range found.Rows {
		s.Hits = append(s.Hits, pages.Hit{Path: "/messages?" + url.Values{"chat": {chat.JID}}.Encode(), JID: chat.JID,
			Text: cmp.Or(chat.Title, chat.JID), Detail: chat.JID})
	}
	if found.Next != nil {
		s.All = "/chats?" + url.Values{"text": {text}}.Encode()
	}
	return s, err
}

func (c messagePages) findPeople(ctx context.Context, text string) (s pages.SearchSection, err error) {
	s.Title = "People"
	found, err := rows.FindPeople(ctx, c.Store, text, maxHits)
	for _, p := range found {
		s.Hits = append(s.Hits, pages.Hit{Path: "/messages?" + url.Values{"sender": {p.ID}}.Encode(), JID: p.ID,
			Text: cmp.Or(p.Name, p.ID), Detail: p.ID})
	}
	return s, err
}
