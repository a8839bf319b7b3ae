package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// list shows the messages that were not delivered, dropped, or wait for an operator: counts by reason, and the
// messages of one.
func (c lostPages) list(r *http.Request) (*shown, error) {
	key := r.URL.Query().Get("reason")
	data, err := c.counts(r.Context(), key)
	if err == nil && data.Chosen != nil {
		data.List, err = c.messages(r, data.Chosen)
	}
	return &shown{data: data}, err
}

// confirm asks before all messages of a reason are replayed.
func (c lostPages) confirm(r *http.Request) (*shown, error) {
	data, err := c.counts(r.Context(), r.URL.Query().Get("reason"))
	if err == nil && data.Chosen != nil && data.Chosen.Replay {
		data.Confirm, err = c.confirmReplay(r, data.Chosen)
	}
	return &shown{data: data}, err
}

// counts are the counts by reason. The reason with the key is chosen.
func (c lostPages) counts(ctx context.Context, key string) (data pages.Lost, err error) {
	dropped, err := rows.DroppedReasons(ctx, c.Store)
	if err != nil {
		return data, err
	}
	data = pages.Lost{Now: c.Now().UnixMilli(), Groups: []pages.LostGroup{
		{Title: "Not delivered", Reasons: undeliveredReasons()}, {Title: "Dropped", Reasons: droppedReasons(dropped)},
		{Title: "Waiting for an operator", Reasons: []pages.LostReason{{
			Key: "parked", Title: "parked", Text: "its chat is not connected: approve or reject it under Approvals",
			Filter: rows.MessageFilter{Disposition: msg.Onboarding},
		}}},
	}}
	for _, g := range data.Groups {
		for i := range g.Reasons {
			l := &g.Reasons[i]
			if l.Count, err = rows.Count(ctx, c.Store, l.Filter, pages.MaxLostCount); err != nil {
				return data, err
			}
			if l.Key == key {
				data.Chosen = l
			}
		}
	}
	return data, nil
}

// undeliveredReasons are the classes of errors, and the states, of messages that were not delivered.
func undeliveredReasons() (all []pages.LostReason) {
	for _, each := range []struct {
		class msg.ErrorClass
		text  string
	}{
		{msg.Transient, "the platform kept failing"}, {msg.Rate, "the platform kept asking to wait"},
		{msg.Permanent, "the platform refused it"}, {msg.Expired, "the platform was out of reach for too long"},
		{msg.Auth, "the bot's credentials are wrong"}, {msg.Ambiguous, "the platform never said whether it arrived"},
	} {
		all = append(all, pages.LostReason{Key: "failed." + string(each.class), Title: "failed, " + string(each.class),
			Text: each.text, Replay: true, Filter: rows.MessageFilter{State: msg.OutFailed, Class: each.class}})
	}
	return append(all,
		pages.LostReason{Key: "cancelled", Title: "cancelled", Replay: true,
			Text: "it was withdrawn before it was delivered, for example by /stop", Filter: rows.MessageFilter{State: msg.OutCancelled}},
		pages.LostReason{Key: "ambiguous", Title: "ambiguous", Replay: true,
			Text: "it may have arrived; delivery was given up", Filter: rows.MessageFilter{State: msg.OutAmbiguous}})
}

// droppedReasons are the reasons of messages that were dropped.
func droppedReasons(codes []msg.Reason) (all []pages.LostReason) {
	for _, code := range codes {
		all = append(all, pages.LostReason{Key: "dropped." + string(code), Title: string(code),
			Text: cmp.Or(code.Meaning(), string(code)), Replay: worthReplaying(code),
			Filter: rows.MessageFilter{Disposition: msg.Dropped, Reason: code}})
	}
	return all
}

// worthReplaying reports whether a copy of a message that was dropped for a reason can end otherwise, once the cause
// is fixed. Edits, votes and second copies are not offered.
func worthReplaying(code msg.Reason) bool {
	return slices.Contains([]msg.Reason{
		msg.ReasonNoRoute, msg.ReasonNoGroup, msg.ReasonNoAccess, msg.ReasonRateLimit, msg.ReasonBuiltinDrop,
		msg.ReasonDaemonFailed, msg.ReasonStale, msg.ReasonRejected, msg.ReasonExpired, msg.ReasonOnboardingFull,
		msg.ReasonOnboardingLimit, msg.ReasonBotLoop, msg.ReasonStopped, msg.ReasonBadRow, msg.ReasonFanOut,
	}, code)
}

// messages is a page of the messages of a reason.
func (c lostPages) messages(r *http.Request, l *pages.LostReason) (*pages.LostList, error) {
	ctx := r.Context()
	filter := l.Filter
	var err error
	if filter.Before, err = position(r.URL.Query()); err != nil {
		return nil, err
	}
	filter.Limit = maxMessages
	page, err := rows.ListMessages(ctx, c.Store, filter)
	if err != nil {
		return nil, err
	}
	list := &pages.LostList{Lines: page.Rows, Copies: map[int64]int64{}}
	for _, m := range page.Rows {
		if list.Copies[m.ID], err = factrows.CopyOf(ctx, c.Store, m.ID); err != nil {
			return nil, err
		}
	}
	if page.Next != 0 {
		list.Next = older(r, page.Next)
	}
	list.Titles, err = c.titlesOf(ctx, page.Rows)
	return list, err
}
