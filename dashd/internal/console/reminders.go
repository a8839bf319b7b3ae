package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"arizuko/dashd/internal/rows"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// reminders lists the active reminders that are due next, or those of a chat or a group in a state.
func (c *Console) reminders(r *http.Request) (*shown, error) {
	q := r.URL.Query()
	state := cmp.Or(msg.ReminderState(q.Get("state")), msg.ReminderActive)
	chat, folder := q.Get("chat"), q.Get("group")
	after, err := strconv.ParseInt(cmp.Or(q.Get("after"), "0"), 10, 64)
	if err != nil {
		return nil, apierr.New(apierr.BadRequest, "after=%.40q is not an id", q.Get("after"))
	}
	page := pages.RemindersPage{Now: c.Now().UnixMilli()}
	var rows []*msg.Reminder
	switch {
	case chat != "":
		page.Of, page.Choices = "Reminders for the chat "+line(chat), reminderChoices(url.Values{"chat": {chat}}, state)
		rows, err = c.Store.Reminders(r.Context(), store.ReminderList{ChatJID: chat, State: state, After: after,
			Limit: maxRows + 1})
	case folder != "":
		page.Of, page.Choices = "Reminders of the group "+line(folder),
			reminderChoices(url.Values{"group": {folder}}, state)
		rows, err = c.Store.Reminders(r.Context(), store.ReminderList{Folder: folder, State: state, After: after,
			Limit: maxRows + 1})
	case after > 0:
		rows, err = c.Store.Reminders(r.Context(), store.ReminderList{After: after, Limit: maxRows + 1})
	default: // those that are due next; their rest is found by chat or group
		rows, err = c.Store.Reminders(r.Context(), store.ReminderList{DueBy: math.MaxInt64, Limit: maxRows})
	}
	if err != nil {
		return nil, err
	}
	if len(rows) > maxRows {
		rows = rows[:maxRows]
		q.Set("after", strconv.FormatInt(rows[maxRows-1].ID, 10))
		q.Del(flashParameter)
		page.More = "/reminders?" + q.Encode()
	} else if page.Of == "" && after == 0 && len(rows) == maxRows {
		page.More = "/reminders?after=1"
	}
	titles := titles{c: c, known: map[string]string{}}
	for _, reminder := range rows {
		shown, err := c.reminderLine(r.Context(), reminder, titles.of(r.Context(), reminder.ChatJID))
		if err != nil {
			return nil, err
		}
		page.Lines = append(page.Lines, shown)
	}
	return &shown{title: "Reminders", template: "reminders.html", data: page}, titles.err
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

func (c *Console) reminderLine(ctx context.Context, r *msg.Reminder, title string) (pages.ReminderLine, error) {
	slot, row, err := c.Store.LastSlot(ctx, r.ID)
	shown := pages.ReminderLine{
		ID: r.ID, Folder: r.Folder, Chat: line(r.ChatJID), Title: title, Topic: line(r.Topic),
		Body:   cutText(r.Body, maxText),
		Prompt: r.Kind == msg.ReminderPrompt, Repeats: r.Cron, Zone: r.TimeZone, Next: r.NextSlot, Last: slot,
		LastRow: row,
		By:      line(r.CreatedBy), CanCancel: r.State == msg.ReminderActive,
	}
	if r.State != msg.ReminderActive {
		shown.State, shown.EndedBy, shown.Error = string(r.State), line(r.UpdatedBy), line(r.Error)
	}
	return shown, err
}

// cancelReminder asks gated to end a reminder.
func (c *Console) cancelReminder(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = ask(r.Context(), c.Gated, "gated", http.MethodPost, "/v1/reminders/"+url.PathEscape(id)+"/cancel",
		map[string]string{"by": login.Sender(r.Context())}, nil)
	return "/reminders", fmt.Sprintf("Reminder %s was cancelled.", id), err
}

// polls lists polls, or the open ones.
func (c *Console) polls(r *http.Request) (*shown, error) {
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
	titles := titles{c: c, known: map[string]string{}}
	for _, p := range rows {
		shown, err := c.pollLine(r.Context(), p, titles.of(r.Context(), p.ChatJID))
		if err != nil {
			return nil, err
		}
		page.Lines = append(page.Lines, shown)
	}
	return &shown{title: "Polls", template: "polls.html", data: page}, titles.err
}

func (c *Console) pollLine(ctx context.Context, p *msg.StoredPoll, title string) (pages.PollLine, error) {
	shown := pages.PollLine{
		ID: p.ID, Message: p.MessageID, Folder: p.Folder, Chat: line(p.ChatJID), Title: title,
		Question: cutText(p.Poll.Question, maxText),
		Multiple: p.Poll.Multiple, Open: p.State == msg.PollOpen, CreatedAt: p.CreatedAt, Closes: p.Poll.ClosesAt,
		Ended: p.ClosedAt,
	}
	result, err := c.Store.PollResult(ctx, p)
	if err != nil {
		return shown, err
	}
	if result == nil {
		result = &msg.PollResult{}
	}
	shown.Voters = result.Voters
	most := 1
	for _, n := range result.Counts {
		most = max(most, n)
	}
	for i, text := range p.Poll.Options {
		option := pages.PollOption{Text: line(text)}
		if i < len(result.Counts) {
			option.Votes = result.Counts[i]
			option.Share = 100 * option.Votes / most
		}
		shown.Options = append(shown.Options, option)
	}
	return shown, nil
}

// closePoll asks gated to close a poll.
func (c *Console) closePoll(r *http.Request) (next, notice string, err error) {
	id := chi.URLParam(r, "id")
	err = ask(r.Context(), c.Gated, "gated", http.MethodPost, "/v1/polls/"+url.PathEscape(id)+"/close", nil, nil)
	return "/polls", fmt.Sprintf("Poll %s was closed: its chat sees the result.", id), err
}
