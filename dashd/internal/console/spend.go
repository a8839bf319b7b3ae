package console

import (
	"net/http"
	"slices"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
)

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
	page.Days = allDays(c.Now().Local(), days)
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

// allDays are the days up to today, with those on which nothing was used.
func allDays(today time.Time, used []factrows.SpendRow) (all []factrows.SpendRow) {
	for i := range spendDays {
		day := factrows.SpendRow{Name: today.AddDate(0, 0, i+1-spendDays).Format(time.DateOnly)}
		if i := slices.IndexFunc(used, func(u factrows.SpendRow) bool { return u.Name == day.Name }); i >= 0 {
			day = used[i]
		}
		all = append(all, day)
	}
	return all
}
