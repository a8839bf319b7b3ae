package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/routeapi"
)

// Limits of the lists of chats and windows.
const (
	maxFilter      = 200 // bytes of a text that is looked for
	maxOpenCount   = 100 // turns of a chat that are counted
	maxWindowsRead = 1000
)

// list shows chats, the one seen last first.
func (c chatPages) list(r *http.Request) (*shown, error) {
	q, ctx := r.URL.Query(), r.Context()
	f := rows.ChatFilter{Platform: q.Get("platform"), Text: strings.TrimSpace(q.Get("text")), Limit: maxRows}
	if len(f.Text) > maxFilter {
		return nil, apierr.New(apierr.BadRequest, "The text is too long: at most %d bytes.", maxFilter)
	}
	if before := q.Get("before"); before != "" {
		at, jid, _ := strings.Cut(before, "~")
		seen, err := strconv.ParseInt(at, 10, 64)
		if err != nil || jid == "" {
			return nil, apierr.New(apierr.BadRequest, "before=%.80q is not a position in the list.", before)
		}
		f.Before = rows.ChatPosition{SeenAt: seen, JID: jid}
	}
	list, err := rows.ListChats(ctx, c.Store, f)
	if err != nil {
		return nil, err
	}
	page := pages.ChatList{Now: c.Now().UnixMilli(), Platform: pages.Line(f.Platform), Text: f.Text,
		Bounded: list.Bounded, Later: f.Before.JID != ""}
	if page.Platforms, err = rows.Platforms(ctx, c.Store); err != nil {
		return nil, err
	}
	if page.Lines, err = c.chatRows(ctx, list.Rows, page.Now); err != nil {
		return nil, err
	}
	if list.Next != nil {
		page.Next = below(r, "before", strconv.FormatInt(list.Next.SeenAt, 10)+"~"+list.Next.JID)
	}
	return &shown{data: page}, nil
}

func (c chatPages) chatRows(ctx context.Context, chats []rows.SeenChat, now int64) ([]pages.ChatRow, error) {
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	windows, err := rows.OpenWindows(ctx, c.Store, now, "", "", maxWindowsRead)
	if err != nil {
		return nil, err
	}
	last := map[string]rows.OpenWindow{}
	for _, w := range windows { // the later ones end later
		last[w.ChatJID] = w
	}
	from, to := c.spendSpan()
	list := make([]pages.ChatRow, len(chats))
	for i, chat := range chats {
		turns, err := rows.CountOpenTurns(ctx, c.Store, chat.JID, "", "", maxOpenCount)
		if err != nil {
			return nil, err
		}
		used, err := rows.ChatSpend(ctx, c.Store, chat.JID, from, to)
		if err != nil {
			return nil, err
		}
		home, err := t.homes.Of(ctx, c.Store, &chat.Chat)
		if err != nil {
			return nil, err
		}
		list[i] = pages.ChatRow{SeenChat: chat, Home: home, Open: turns.Open, Window: last[chat.JID], Spend: used}
	}
	return list, nil
}

// engagement lists the windows that are open, those that end first first.
func (c chatPages) engagement(r *http.Request) (*shown, error) {
	q, now := r.URL.Query(), c.Now().UnixMilli()
	after, chat, place := now, q.Get("chat"), q.Get("place")
	if chat != "" {
		until, err := strconv.ParseInt(q.Get("until"), 10, 64)
		if err != nil {
			return nil, apierr.New(apierr.BadRequest, "until=%.40q is no time in ms.", q.Get("until"))
		}
		if after = until; until <= now { // those before it are over
			after, chat, place = now, "", ""
		}
	}
	windows, err := rows.OpenWindows(r.Context(), c.Store, after, chat, place, maxRows+1)
	if err != nil {
		return nil, err
	}
	page := pages.List[rows.OpenWindow]{Now: now, Lines: windows, Later: q.Get("chat") != ""}
	if len(windows) > maxRows {
		page.Lines = windows[:maxRows]
		w := windows[maxRows-1]
		page.Next = below(r, "until", strconv.FormatInt(w.Until, 10), "chat", w.ChatJID, "place", w.Place)
	}
	return &shown{data: page}, nil
}

// endEngagement ends a window: routd does it.
func (c chatPages) endEngagement(r *http.Request) (next, notice string, err error) {
	chat, place, now := r.PostForm.Get("chat"), r.PostForm.Get("place"), int64(0)
	err = c.ask(r.Context(), "routd", http.MethodPost, routeapi.EngagementPath,
		routeapi.EngagementRequest{JID: &chat, Topic: &place, TTL: &now}, nil)
	return back(r, "/engagement"),
		fmt.Sprintf("The window in %s has ended. New messages there start a turn only if a route leads "+
			"them to a group.",
			pages.Line(chat)), err
}
