package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

// list shows what was not delivered, dropped, or waits for an operator: counts by reason, and the messages of one.
func (c lostPages) list(r *http.Request) (*shown, error) {
	key := r.URL.Query().Get("reason")
	data, chosen, err := c.lostCounts(r.Context(), key)
	if err == nil && chosen != nil {
		data.List, err = c.lostList(r.Context(), chosen, r.URL.Query().Get("before"))
	}
	return &shown{title: "Lost and found", template: "lost.html", data: data}, err
}

// confirm asks before all messages of a reason are replayed.
func (c lostPages) confirm(r *http.Request) (*shown, error) {
	query := r.URL.Query()
	data, chosen, err := c.lostCounts(r.Context(), query.Get("reason"))
	if err == nil && chosen != nil && chosen.Replay {
		data.Confirm, err = c.confirmReplay(r.Context(), chosen, query.Get("before"))
	}
	return &shown{title: "Lost and found", template: "lost.html", data: data,
		up: []pages.Link{{Path: "/lost", Text: "Lost and found"}}}, err
}

// lostCounts are the counts by reason, and the reason with a key, nil if there is none.
func (c lostPages) lostCounts(ctx context.Context, key string) (data pages.Lost, chosen *pages.LostReason, err error) {
	undelivered, dropped, parked, err := c.lostReasons(ctx)
	if err != nil {
		return data, nil, err
	}
	all := slices.Concat(undelivered, dropped, parked)
	if i := slices.IndexFunc(all, func(l pages.LostReason) bool { return l.Key == key }); i >= 0 {
		chosen = &all[i]
	}
	none := func(l pages.LostReason) bool { return l.Count == 0 }
	return pages.Lost{Now: c.Now().UnixMilli(), Chosen: chosen, Groups: []pages.LostGroup{
		{Title: "Not delivered", Reasons: slices.DeleteFunc(undelivered, none)},
		{Title: "Dropped", Reasons: slices.DeleteFunc(dropped, none)},
		{Title: "Waiting for an operator", Reasons: slices.DeleteFunc(parked, none)},
	}}, chosen, nil
}

// lostReasons are the reasons that messages have, with how many have them.
func (c lostPages) lostReasons(ctx context.Context) (undelivered, dropped, parked []pages.LostReason, err error) {
	for _, class := range []struct {
		class msg.ErrorClass
		text  string
	}{
		{msg.Permanent, "the platform refused it"}, {msg.Expired, "the platform was out of reach for too long"},
		{msg.Ambiguous, "the platform never said whether it arrived"}, {msg.Transient, "the platform kept failing"},
		{msg.Rate, "the platform kept asking to wait"}, {msg.Auth, "the bot's credentials are wrong"},
	} {
		n, err := rows.FailedCount(ctx, c.Store, class.class, pages.MaxLostCount)
		if err != nil {
			return nil, nil, nil, err
		}
		undelivered = append(undelivered, pages.LostReason{Key: "failed." + string(class.class),
			Title: "failed, " + string(class.class), Text: class.text, Count: n, Replay: true,
			Filter: rows.MessageFilter{State: msg.OutFailed, Class: class.class}})
	}
	for state, text := range map[msg.OutState]string{
		msg.OutAmbiguous: "it may have arrived, and was given up",
		msg.OutCancelled: "it was withdrawn before it was delivered, as by /stop",
	} {
		n, err := rows.UndeliveredCount(ctx, c.Store, state, pages.MaxLostCount)
		if err != nil {
			return nil, nil, nil, err
		}
		undelivered = append(undelivered, pages.LostReason{Key: string(state), Title: string(state), Text: text, Count: n,
			Replay: true, Filter: rows.MessageFilter{State: state}})
	}
	slices.SortStableFunc(undelivered, func(a, b pages.LostReason) int { return strings.Compare(b.Title, a.Title) })
	reasons, err := rows.DroppedReasons(ctx, c.Store, pages.MaxLostCount)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, d := range reasons {
		dropped = append(dropped, pages.LostReason{Key: "dropped." + string(d.Reason), Title: string(d.Reason),
			Text: cmp.Or(d.Reason.Meaning(), string(d.Reason)), Count: d.Count, Replay: worthReplaying(d.Reason),
			Filter: rows.MessageFilter{Disposition: msg.Dropped, Reason: d.Reason}})
	}
	n, err := rows.ParkedCount(ctx, c.Store, pages.MaxLostCount)
	parked = append(parked, pages.LostReason{Key: "parked", Title: "parked", Count: n,
		Text: "its chat is not connected: approve or reject it under Approvals", Filter: rows.MessageFilter{Disposition: msg.Onboarding}})
	return undelivered, dropped, parked, err
}

// worthReplaying reports whether a copy of a message that was dropped for a reason can end otherwise, once what was
// missing is fixed. What was an edit, a vote or a second copy is not offered.
func worthReplaying(code msg.Reason) bool {
	return slices.Contains([]msg.Reason{
		msg.ReasonNoRoute, msg.ReasonNoGroup, msg.ReasonNoAccess, msg.ReasonRateLimit, msg.ReasonBuiltinDrop,
		msg.ReasonDaemonFailed, msg.ReasonStale,
		msg.ReasonRejected, msg.ReasonExpired, msg.ReasonOnboardingFull, msg.ReasonOnboardingLimit, msg.ReasonBotLoop,
		msg.ReasonStopped, msg.ReasonBadRow,
		msg.ReasonFanOut,
	}, code)
}

// lostList is a page of the messages of a reason.
func (c lostPages) lostList(ctx context.Context, l *pages.LostReason, before string) (*pages.LostList, error) {
	filter := l.Filter
	var err error
	if filter.Before, err = lostPosition(before); err != nil {
		return nil, err
	}
	filter.Limit = maxMessages
	page, err := rows.ListMessages(ctx, c.Store, filter)
	if err != nil {
		return nil, err
	}
	list := &pages.LostList{Lines: page.Rows, Copies: map[int64]int64{}}
	for _, m := range page.Rows {
		if list.Copies[m.ID], err = c.Store.CopyOf(ctx, m.ID); err != nil {
			return nil, err
		}
	}
	if page.Next != 0 {
		list.Next = l.Path() + "&before=" + strconv.FormatInt(page.Next, 10)
	}
	list.Titles, err = c.titlesOf(ctx, page.Rows)
	return list, err
}

// lostPosition reads where a list continues; "" is its beginning, 0.
func lostPosition(before string) (int64, error) {
	if before == "" {
		return 0, nil
	}
	position, err := strconv.ParseInt(before, 10, 64)
	if err != nil || position <= 0 {
		return 0, apierr.New(apierr.BadRequest, "The address is not complete: begin with Lost and found.")
	}
	return position, nil
}
