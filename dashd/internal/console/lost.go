package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

const (
	// maxLostCount bounds the count of messages of one reason.
	maxLostCount = 10_000
)

// lostReason is why messages are lost: what did not arrive, by its state or the class of its error; what was dropped,
// by its reason; what is parked.
type lostReason struct {
	key    string // in addresses
	title  string
	text   string
	count  int
	filter rows.MessageFilter
	replay bool // a copy may go otherwise
}

// lost shows what was not delivered, dropped, or waits for an operator: counts by reason, and the messages of one.
func (c *Console) lost(r *http.Request) (*shown, error) {
	key := r.URL.Query().Get("reason")
	data, chosen, err := c.lostCounts(r.Context(), key)
	if err == nil && chosen != nil {
		data.List, err = c.lostList(r.Context(), *chosen, r.URL.Query().Get("before"))
	}
	return &shown{title: "Lost and found", template: "lost.html", data: data}, err
}

// confirmLost asks before all messages of a reason are replayed.
func (c *Console) confirmLost(r *http.Request) (*shown, error) {
	query := r.URL.Query()
	data, chosen, err := c.lostCounts(r.Context(), query.Get("reason"))
	if err == nil && chosen != nil && chosen.replay {
		data.Confirm, err = c.confirmReplay(r.Context(), *chosen, query.Get("before"))
	}
	return &shown{title: "Lost and found", template: "lost.html", data: data,
		up: []pages.Link{{Path: "/lost", Text: "Lost and found"}}}, err
}

// lostCounts are the counts by reason, and the reason with a key, nil if there is none.
func (c *Console) lostCounts(ctx context.Context, key string) (data pages.Lost, chosen *lostReason, err error) {
	undelivered, dropped, parked, err := c.lostReasons(ctx)
	if err != nil {
		return data, nil, err
	}
	data = pages.Lost{Now: c.Now().UnixMilli(), Counts: []pages.LostGroup{
		lostGroup("Not delivered", undelivered, key), lostGroup("Dropped", dropped, key),
		lostGroup("Waiting for an operator", parked, key),
	}}
	all := slices.Concat(undelivered, dropped, parked)
	if i := slices.IndexFunc(all, func(l lostReason) bool { return l.key == key }); i >= 0 {
		chosen = &all[i]
	}
	return data, chosen, nil
}

// lostReasons are the reasons that messages have, with how many have them.
func (c *Console) lostReasons(ctx context.Context) (undelivered, dropped, parked []lostReason, err error) {
	for _, class := range []struct {
		class msg.ErrorClass
		text  string
	}{
		{msg.Permanent, "the platform refused it"}, {msg.Expired, "the platform was out of reach for too long"},
		{msg.Ambiguous, "the platform never said whether it arrived"}, {msg.Transient, "the platform kept failing"},
		{msg.Rate, "the platform kept asking to wait"}, {msg.Auth, "the bot's credentials are wrong"},
	} {
		n, err := rows.FailedCount(ctx, c.Store, class.class, maxLostCount)
		if err != nil {
			return nil, nil, nil, err
		}
		undelivered = append(undelivered, lostReason{"failed." + string(class.class), "failed, " + string(class.class),
			class.text, n,
			rows.MessageFilter{State: msg.OutFailed, Class: class.class}, true})
	}
	for state, text := range map[msg.OutState]string{
		msg.OutAmbiguous: "it may have arrived, and was given up",
		msg.OutCancelled: "it was withdrawn before it was delivered, as by /stop",
	} {
		n, err := rows.UndeliveredCount(ctx, c.Store, state, maxLostCount)
		if err != nil {
			return nil, nil, nil, err
		}
		undelivered = append(undelivered, lostReason{string(state), string(state), text, n,
			rows.MessageFilter{State: state}, true})
	}
	slices.SortStableFunc(undelivered, func(a, b lostReason) int { return strings.Compare(b.title, a.title) })
	reasons, err := rows.DroppedReasons(ctx, c.Store, maxLostCount)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, d := range reasons {
		dropped = append(dropped, lostReason{"dropped." + string(d.Reason), string(d.Reason),
			cmp.Or(d.Reason.Meaning(), string(d.Reason)), d.Count,
			rows.MessageFilter{Disposition: msg.Dropped, Reason: d.Reason}, worthReplaying(d.Reason)})
	}
	n, err := rows.ParkedCount(ctx, c.Store, maxLostCount)
	parked = append(parked, lostReason{"parked", "parked",
		"its chat is not connected: approve or reject it under Approvals", n,
		rows.MessageFilter{Disposition: msg.Onboarding}, false})
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

func lostPath(key string) string { return "/lost?" + url.Values{"reason": {key}}.Encode() }

func lostGroup(title string, reasons []lostReason, current string) pages.LostGroup {
	group := pages.LostGroup{Title: title}
	for _, l := range reasons {
		if l.count == 0 {
			continue
		}
		count := strconv.Itoa(l.count)
		if l.count >= maxLostCount {
			count = fmt.Sprintf("%d or more", maxLostCount)
		}
		group.Counts = append(group.Counts, pages.LostCount{
			Reason: plaintext.Line(l.title), Text: l.text, Path: lostPath(l.key), Count: count,
			Current: l.key == current,
		})
	}
	return group
}

// verb is what a replay does to the messages of a reason.
func (l *lostReason) verb() string {
	if l.filter.State != "" {
		return "Send again"
	}
	return "Decide again"
}

// lostList is a page of the messages of a reason.
func (c *Console) lostList(ctx context.Context, l lostReason, before string) (*pages.LostList, error) {
	list := &pages.LostList{Title: "Messages: " + plaintext.Line(l.title), Reason: l.text, Key: l.key, Replay: l.replay,
		Verb: l.verb(), AllPath: "/lost/confirm?" + url.Values{"reason": {l.key}}.Encode()}
	filter := l.filter
	var err error
	if filter.Before, err = lostPosition(before); err != nil {
		return nil, err
	}
	filter.Limit = maxMessages
	page, err := rows.ListMessages(ctx, c.Store, filter)
	if err != nil {
		return nil, err
	}
	lines, err := c.messageLines(ctx, page.Rows)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		copied, err := c.Store.CopyOf(ctx, line.ID)
		if err != nil {
			return nil, err
		}
		list.Lines = append(list.Lines, pages.LostLine{MessageLine: line, Copy: copied})
	}
	if page.Next != 0 {
		list.Next = lostPath(l.key) + "&before=" + strconv.FormatInt(page.Next, 10)
	}
	return list, nil
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
