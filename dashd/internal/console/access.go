package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// endEngagement ends a window: routd does it.
func (c *Console) endEngagement(r *http.Request) (next, notice string, err error) {
	chat, place, now := r.PostForm.Get("chat"), r.PostForm.Get("place"), int64(0)
	err = ask(r.Context(), c.Routd, "routd", http.MethodPost, routeapi.EngagementPath,
		routeapi.EngagementRequest{JID: &chat, Topic: &place, TTL: &now}, nil)
	return "/engagement",
		fmt.Sprintf("The window in %s is ended. What is written there starts a turn only if a route leads it to a group.", line(chat)), err
}

// access says what a sender may do in a chat, and why.
func (c *Console) access(r *http.Request) (*shown, error) {
	q, ctx := r.URL.Query(), r.Context()
	page := pages.Access{Chat: strings.TrimSpace(q.Get("chat")), Sender: strings.TrimSpace(q.Get("sender")),
		Name: q.Get("name"), Thread: q.Get("thread")}
	var err error
	if page.Operators, err = c.operators(ctx); err != nil {
		return nil, err
	}
	recent, err := rows.ListChats(ctx, c.Store, rows.ChatFilter{Limit: maxRows})
	if err != nil {
		return nil, err
	}
	for _, chat := range recent.Rows {
		page.Chats = append(page.Chats, pages.KnownChat{JID: chat.JID, Title: line(chat.Title)})
	}
	if page.Chat != "" && page.Sender != "" {
		query := url.Values{"jid": {page.Chat}, "sender": {page.Sender}, "sender_name": {page.Name},
			"thread_id": {page.Thread}}
		var answer routeapi.Access
		if refused := ask(ctx, c.Routd, "routd", http.MethodGet, routeapi.AccessPath+"?"+query.Encode(), nil,
			&answer); refused != nil {
			page.Problem = plainText(refused.Error())
		} else {
			titles := titles{c: c, known: map[string]string{}}
			page.Answer = accessWords(&answer)
			page.Answer.Title = titles.of(ctx, answer.ChatJID)
			err = titles.err
		}
	}
	return &shown{title: "Access", template: "access.html", data: page}, err
}

func accessWords(a *routeapi.Access) *pages.AccessAnswer {
	words := &pages.AccessAnswer{
		JID: a.ChatJID, Chat: line(a.ChatJID), Kind: kindWords(a.Kind), Sender: line(a.Sender), Operator: a.Operator,
		Pinned: line(a.Pinned),
	}
	verbs := map[string]string{msg.VerbMessage: "A message", msg.VerbMention: "A mention of the bot",
		msg.VerbReply: "A reply to the bot"}
	for _, row := range a.Rows {
		shown := pages.AccessRow{Verb: cmp.Or(verbs[row.Verb], line(row.Verb)),
			Outcome: outcome(&row.Answer, row.Admitted), Folder: line(row.Answer.Folder)}
		shown.Starts = row.Admitted && row.Answer.Action == routeapi.Trigger
		if shown.Starts && row.Rate > 0 {
			shown.Outcome += fmt.Sprintf(", at most %d an hour", row.Rate)
		}
		for _, step := range row.Answer.Trace {
			shown.Why = append(shown.Why, line(step))
		}
		words.Rows = append(words.Rows, shown)
	}
	if h := a.Home; h != nil {
		words.Home, words.Admitted, words.Pins = line(h.Folder), h.Admitted, h.Pins
		words.Reaches, words.Lists = line(strings.Join(h.Reaches, ", ")), accessText(h.Access)
	}
	return words
}

// accessText words a group's setting access.
func accessText(access groupconfig.Access) string {
	switch {
	case access == nil:
		return groupconfig.Everyone
	case len(access) == 0:
		return "operators alone"
	}
	return line(strings.Join(access, ", "))
}

// outcome words what becomes of a message.
func outcome(a *routeapi.Answer, admitted bool) string {
	switch {
	case !admitted:
		return fmt.Sprintf("is dropped: the access of %s does not list the sender", line(a.Folder))
	case a.Action == routeapi.Trigger:
		return "starts a turn of " + line(a.Folder)
	case a.Action == routeapi.Observe:
		return "is observed by " + line(a.Folder) + ", which sees it with its next turn"
	case a.Action == routeapi.Builtin, a.Action == routeapi.Daemon:
		return "goes to " + line(a.Target)
	}
	return "starts nothing"
}
