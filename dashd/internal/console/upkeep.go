package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// reminders lists the active reminders that are due next, or those of a chat or a group in a state.
func (c upkeepPages) reminders(r *http.Request) (*shown, error) {
	q := r.URL.Query()
	state := cmp.Or(msg.ReminderState(q.Get("state")), msg.ReminderActive)
	chat, folder, of := q.Get("chat"), q.Get("group"), url.Values{}
	after, err := strconv.ParseInt(cmp.Or(q.Get("after"), "0"), 10, 64)
	if err != nil {
		return nil, apierr.New(apierr.BadRequest, "after=%.40q is not an id", q.Get("after"))
	}
	var page pages.List[pages.ReminderLine]
	list := factrows.ReminderList{State: state, After: after, Limit: maxRows + 1}
	switch {
	case chat != "":
		page.Of = "Reminders for the chat " + pages.Line(chat)
		of.Set("chat", chat)
		list.ChatJID = chat
	case folder != "":
		page.Of = "Reminders of the group " + pages.Line(folder)
		of.Set("group", folder)
		list.Folder = folder
	case !q.Has("after"): // those that are due next; their rest is found by chat or group
		list.DueBy, list.Limit = math.MaxInt64, maxRows
	}
	if page.Of != "" {
		page.Choices = choices("/reminders", of, string(state), "active", "Active", "done", "Done",
			"cancelled", "Cancelled")
	}
	rows, err := factrows.Reminders(r.Context(), c.Store, list)
	if err != nil {
		return nil, err
	}
	if list.DueBy != 0 && len(rows) == maxRows {
		page.Next = "/reminders?after=0"
	} else {
		rows, page.Next = paged(r, rows, "after", func(r *msg.Reminder) int64 { return r.ID })
	}
	lines, err := c.reminderLines(r.Context(), rows)
	lines.Of, lines.Choices, lines.Next = page.Of, page.Choices, page.Next
	return &shown{data: lines}, err
}

// reminderLines is a list of reminders, with when each fired last.
func (c upkeepPages) reminderLines(ctx context.Context, reminders []*msg.Reminder) (
	page pages.List[pages.ReminderLine], err error) {
	page.Now = c.Now().UnixMilli()
	for _, reminder := range reminders {
		slot, row, err := factrows.LastSlot(ctx, c.Store, reminder.ID)
		if err != nil {
			return page, err
		}
		page.Lines = append(page.Lines, pages.ReminderLine{Reminder: reminder, LastSlot: slot, LastRow: row})
	}
	page.Titles, err = c.titles(ctx, chatsOf(reminders, func(r *msg.Reminder) string { return r.ChatJID }))
	return page, err
}

// cancelReminder asks gated to end a reminder.
func (c upkeepPages) cancelReminder(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = c.ask(r.Context(), "gated", http.MethodPost, "/v1/reminders/"+url.PathEscape(id)+"/cancel",
		map[string]string{"by": login.Sender(r.Context())}, nil)
	return back(r, "/reminders"), fmt.Sprintf("Reminder %s was cancelled.", id), err
}

// polls lists polls, or the open ones.
func (c upkeepPages) polls(r *http.Request) (*shown, error) {
	before, err := position(r.URL.Query())
	if err != nil {
		return nil, err
	}
	state := r.URL.Query().Get("state")
	if state != string(msg.PollOpen) {
		state = ""
	}
	rows, err := rows.Polls(r.Context(), c.Store, state != "", before, maxRows+1)
	if err != nil {
		return nil, err
	}
	rows, next := paged(r, rows, "before", func(p *msg.StoredPoll) int64 { return p.ID })
	page, err := c.pollLines(r.Context(), rows)
	page.Next, page.Choices = next, choices("/polls", url.Values{}, state, "", "All", "open", "Open")
	return &shown{data: page}, err
}

// pollLines is a list of polls, with their results.
func (c upkeepPages) pollLines(ctx context.Context, polls []*msg.StoredPoll) (page pages.List[pages.PollLine],
	err error) {
	page.Now = c.Now().UnixMilli()
	for _, p := range polls {
		result, err := factrows.PollResult(ctx, c.Store, p)
		if err != nil {
			return page, err
		}
		line := pages.PollLine{StoredPoll: p}
		if result != nil {
			line.Result = *result
		}
		page.Lines = append(page.Lines, line)
	}
	page.Titles, err = c.titles(ctx, chatsOf(polls, func(p *msg.StoredPoll) string { return p.ChatJID }))
	return page, err
}

// closePoll asks gated to close a poll.
func (c upkeepPages) closePoll(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = c.ask(r.Context(), "gated", http.MethodPost, "/v1/polls/"+url.PathEscape(id)+"/close", nil, nil)
	return back(r, "/polls"), fmt.Sprintf("Poll %s was closed: its chat sees the result.", id), err
}

// spendDays is how many days the page of spend has.
const spendDays = 30

// spend shows the tokens and dollars of agents: by day, and by group and chat of all days or of one.
func (c upkeepPages) spend(r *http.Request) (*shown, error) {
	ctx, q := r.Context(), r.URL.Query()
	list := factrows.SpendList{Folder: q.Get("group"), Limit: maxRows}
	list.From, list.To = c.spendSpan()
	page := pages.Spend{Day: q.Get("day"), Folder: list.Folder}
	days, err := factrows.ListSpend(ctx, c.Store, factrows.ByDay, list)
	if err != nil {
		return nil, err
	}
	page.Chart = pages.Chart{ID: "days", Unit: pages.Dollars, Columns: columns("day", c.Now()),
		Series: []pages.Series{pages.NewSeries("dollars", 0, "/turns", "group", list.Folder)}}
	for _, d := range days {
		page.Chart.Add(dayStart(d.Name), 0, d.CostUSD)
	}
	slices.Reverse(days)
	page.Days = days
	if page.Day != "" {
		if _, err := time.Parse(time.DateOnly, page.Day); err != nil {
			return nil, apierr.New(apierr.BadRequest, "day=%.40q is not a day, as in 2026-11-23", page.Day)
		}
		list.From, list.To = page.Day, page.Day
	}
	if page.Groups, err = factrows.ListSpend(ctx, c.Store, factrows.ByGroup, list); err != nil {
		return nil, err
	}
	if page.Chats, err = factrows.ListSpend(ctx, c.Store, factrows.ByChat, list); err != nil {
		return nil, err
	}
	page.Titles, err = c.titles(ctx, chatsOf(page.Chats, func(chat factrows.SpendRow) string { return chat.Name }))
	return &shown{data: page}, err
}

// spendSpan is the first and the last of the days that are shown.
func (c *site) spendSpan() (from, to string) {
	today := c.Now().Local()
	return today.AddDate(0, 0, 1-spendDays).Format(time.DateOnly), today.Format(time.DateOnly)
}

const maxAuditWhats = 100

// audit lists changes, the newest first.
func (c upkeepPages) audit(r *http.Request) (*shown, error) {
	ctx, query := r.Context(), r.URL.Query()
	page := pages.Audit{Who: strings.TrimSpace(query.Get("who")), What: query.Get("what"), Now: c.Now().UnixMilli()}
	page.Filtered = page.Who != "" || page.What != "" || query.Has("before")
	q := factrows.AuditQuery{Who: page.Who, What: page.What, Limit: maxRows + 1}
	var err error
	if q.Before, err = position(query); err != nil {
		return nil, err
	}
	list, err := factrows.Audit(ctx, c.Store, q)
	if err != nil {
		return nil, err
	}
	page.Lines, page.Next = paged(r, list, "before", func(a factrows.AuditRow) int64 { return a.ID })
	oldest, err := factrows.OldestAudit(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	if oldest != nil {
		page.Since, page.Deleted, page.Max = oldest.At, oldest.ID > 1, factrows.MaxAuditRows
	}
	page.Whats, err = rows.AuditWhats(ctx, c.Store, maxAuditWhats)
	return &shown{data: page}, err
}
