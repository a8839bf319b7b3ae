package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/routeapi"
)

// endEngagement ends a window: routd does it.
func (c chatPages) endEngagement(r *http.Request) (next, notice string, err error) {
	chat, place, now := r.PostForm.Get("chat"), r.PostForm.Get("place"), int64(0)
	err = c.ask(r.Context(), "routd", http.MethodPost, routeapi.EngagementPath,
		routeapi.EngagementRequest{JID: &chat, Topic: &place, TTL: &now}, nil)
	return "/engagement",
		fmt.Sprintf("The window in %s has ended. New messages there start a turn only if a route leads them to a group.", pages.Line(chat)), err
}

// show explains a sender's permissions in a chat.
func (c accessPages) show(r *http.Request) (*shown, error) {
	q, ctx := r.URL.Query(), r.Context()
	page := pages.Access{Chat: strings.TrimSpace(q.Get("chat")), Sender: strings.TrimSpace(q.Get("sender")),
		Name: q.Get("name"), Thread: q.Get("thread")}
	var err error
	if page.Operators, err = c.operators(ctx); err != nil {
		return nil, err
	}
	if page.Chats, err = rows.NewestChats(ctx, c.Store, maxRows); err != nil {
		return nil, err
	}
	if page.Chat != "" && page.Sender != "" {
		query := url.Values{"jid": {page.Chat}, "sender": {page.Sender}, "sender_name": {page.Name},
			"thread_id": {page.Thread}}
		answer := new(routeapi.Access)
		if refused := c.ask(ctx, "routd", http.MethodGet, routeapi.AccessPath+"?"+query.Encode(), nil,
			answer); refused != nil {
			page.Problem = plainText(refused.Error())
		} else {
			page.Answer = answer
			page.Titles, err = c.titles(ctx, []string{answer.ChatJID})
		}
	}
	return &shown{data: page}, err
}
