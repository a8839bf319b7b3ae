package console

import (
	"net/http"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/store"
)

// spendDays is how many days the page of spend has.
const spendDays = 30

// spend shows what agents have used: by day, and by group and chat of all days or of one.
func (c *Console) spend(r *http.Request) (*shown, error) {
	ctx, q := r.Context(), r.URL.Query()
	list := store.SpendList{Folder: q.Get("group"), Limit: maxRows}
	list.From, list.To = c.spendSpan()
	page := pages.Spend{Day: q.Get("day"), Folder: list.Folder}
	days, err := c.Store.Spend(ctx, store.ByDay, list)
	if err != nil {
		return nil, err
	}
	page.Days = allDays(c.Now().Local(), days)
	for _, d := range page.Days {
		page.Whole.Turns, page.Whole.USD = page.Whole.Turns+d.Turns, page.Whole.USD+d.USD
	}
	if page.Day != "" {
		if _, err := time.Parse(time.DateOnly, page.Day); err != nil {
			return nil, apierr.New(apierr.BadRequest, "day=%.40q is not a day, as in 2026-11-23", page.Day)
		}
		list.From, list.To = page.Day, page.Day
	}
	groups, err := c.Store.Spend(ctx, store.ByGroup, list)
	if err != nil {
		return nil, err
	}
	chats, err := c.Store.Spend(ctx, store.ByChat, list)
	if err != nil {
		return nil, err
	}
	titles := titles{c: c, known: map[string]string{}}
	for _, g := range groups {
		page.Groups = append(page.Groups, spendLine(g))
	}
	for _, chat := range chats {
		l := spendLine(chat)
		l.Title = titles.of(ctx, chat.Name)
		page.Chats = append(page.Chats, l)
	}
	return &shown{title: "Spend", template: "spend.html", data: page}, titles.err
}

// spendSpan is the first and the last of the days that are shown.
func (c *Console) spendSpan() (from, to string) {
	today := c.Now().Local()
	return today.AddDate(0, 0, 1-spendDays).Format(time.DateOnly), today.Format(time.DateOnly)
}

// allDays are the days up to today, with those on which nothing was used.
func allDays(today time.Time, used []store.SpendRow) (all []pages.SpendLine) {
	for i := range spendDays {
		day := pages.SpendLine{Name: today.AddDate(0, 0, i+1-spendDays).Format(time.DateOnly)}
		for _, u := range used {
			if u.Name == day.Name {
				day = spendLine(u)
			}
		}
		all = append(all, day)
	}
	return all
}

func spendLine(r store.SpendRow) pages.SpendLine {
	return pages.SpendLine{Name: r.Name, Turns: r.Turns, Input: r.Input, Output: r.Output, USD: r.CostUSD}
}
