package console

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

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
	chat, folder := q.Get("chat"), q.Get("group")
	after, err := strconv.ParseInt(cmp.Or(q.Get("after"), "0"), 10, 64)
	if err != nil {
		return nil, apierr.New(apierr.BadRequest, "after=%.40q is not an id", q.Get("after"))
	}
	page := pages.RemindersPage{Now: c.Now().UnixMilli()}
	list := factrows.ReminderList{State: state, After: after, Limit: maxRows + 1}
	switch {
	case chat != "":
		page.Of = "Reminders for the chat " + pages.Line(chat)
		page.Choices = reminderChoices(url.Values{"chat": {chat}}, state)
		list.ChatJID = chat
	case folder != "":
		page.Of = "Reminders of the group " + pages.Line(folder)
		page.Choices = reminderChoices(url.Values{"group": {folder}}, state)
		list.Folder = folder
	case !q.Has("after"): // those that are due next; their rest is found by chat or group
		list.DueBy, list.Limit = math.MaxInt64, maxRows
	}
	rows, err := factrows.Reminders(r.Context(), c.Store, list)
	if err != nil {
		return nil, err
	}
	if len(rows) > maxRows {
		rows = rows[:maxRows]
		page.More = below(r, "after", strconv.FormatInt(rows[maxRows-1].ID, 10))
	} else if page.Of == "" && !q.Has("after") && len(rows) == maxRows {
		page.More = "/reminders?after=0"
	}
	for _, reminder := range rows {
		slot, row, err := factrows.LastSlot(r.Context(), c.Store, reminder.ID)
		if err != nil {
			return nil, err
		}
		page.Lines = append(page.Lines, pages.ReminderLine{Reminder: reminder, LastSlot: slot, LastRow: row})
	}
	page.Titles, err = c.titles(r.Context(), chatsOf(rows, func(r *msg.Reminder) string { return r.ChatJID }))
	return &shown{title: "Reminders", template: "reminders.html", data: page}, err
}

func reminderChoices(of url.Values, current msg.ReminderState) (all []pages.Choice) {
	for _, choice := range []struct {
		state msg.ReminderState
		text  string
	}{{msg.ReminderActive, "Active"}, {msg.ReminderDone, "Done"}, {msg.ReminderCancelled, "Cancelled"}} {
		of.Set("state", string(choice.state))
		all = append(all, pages.Choice{Link: pages.Link{Path: "/reminders?" + of.Encode(), Text: choice.text},
			Current: choice.state == current})
	}
	return all
}

// cancelReminder asks gated to end a reminder.
func (c upkeepPages) cancelReminder(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = ask(r.Context(), c.Gated, "gated", http.MethodPost, "/v1/reminders/"+url.PathEscape(id)+"/cancel",
		map[string]string{"by": login.Sender(r.Context())}, nil)
	return "/reminders", fmt.Sprintf("Reminder %s was cancelled.", id), err
}

// polls lists polls, or the open ones.
func (c upkeepPages) polls(r *http.Request) (*shown, error) {
	before, err := position(r.URL.Query())
	if err != nil {
		return nil, err
	}
	open := r.URL.Query().Get("state") == string(msg.PollOpen)
	page := pages.PollsPage{Now: c.Now().UnixMilli(), Choices: []pages.Choice{
		{Link: pages.Link{Path: "/polls", Text: "All"}, Current: !open},
		{Link: pages.Link{Path: "/polls?state=open", Text: "Open"}, Current: open},
	}}
	rows, err := rows.Polls(r.Context(), c.Store, open, before, maxRows+1)
	if err != nil {
		return nil, err
	}
	if len(rows) > maxRows {
		rows = rows[:maxRows]
		page.Older = older(r, rows[maxRows-1].ID)
	}
	for _, p := range rows {
		result, err := factrows.PollResult(r.Context(), c.Store, p)
		if err != nil {
			return nil, err
		}
		line := pages.PollLine{StoredPoll: p}
		if result != nil {
			line.Result = *result
		}
		page.Lines = append(page.Lines, line)
	}
	page.Titles, err = c.titles(r.Context(), chatsOf(rows, func(p *msg.StoredPoll) string { return p.ChatJID }))
	return &shown{title: "Polls", template: "polls.html", data: page}, err
}

// closePoll asks gated to close a poll.
func (c upkeepPages) closePoll(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = ask(r.Context(), c.Gated, "gated", http.MethodPost, "/v1/polls/"+url.PathEscape(id)+"/close", nil, nil)
	return "/polls", fmt.Sprintf("Poll %s was closed: its chat sees the result.", id), err
}
