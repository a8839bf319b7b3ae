package pages

import (
	"net/url"

	"arizuko/pkg/store"
)

// Spend is the page of what agents have used.
type Spend struct {
	Day    string // the day that the groups and chats are of, "" for all that are shown
	Folder string // the group that all is of, "" for all groups
	Days   []SpendLine
	Groups []SpendLine
	Chats  []SpendLine
	Whole  SpendLine // the sum of Days
}

// SpendLine is what was used on a day, by a group or in a chat.
type SpendLine struct {
	Name          string // the day as YYYY-MM-DD, the folder or the chat
	Title         string // of the chat, "" if it has none
	Turns         int64
	Input, Output int64   // tokens
	USD           float64 // US dollars
}

// Dollars is an amount with enough digits to differ from nothing; tokens have a column of their own.
func (l SpendLine) Dollars() string {
	switch {
	case l.USD > 0:
		return store.Spend{CostUSD: l.USD}.Words()
	case l.Turns > 0:
		return "not reported"
	}
	return "$0.00"
}

const (
	dayWidth  = 12 // of a day in the chart
	dayHeight = 60
)

// DayBar is a day in the chart.
type DayBar struct {
	X, Y, Height int
}

// Width is that of the chart.
func (s Spend) Width() int { return dayWidth * len(s.Days) }

// Height is that of the chart.
func (s Spend) Height() int { return dayHeight }

// Bars are the days of the chart. The highest one fills it.
func (s Spend) Bars() (all []DayBar) {
	most := 0.0
	for _, d := range s.Days {
		most = max(most, d.USD)
	}
	for i, d := range s.Days {
		height := 0
		if d.USD > 0 {
			height = max(1, int(d.USD/most*dayHeight))
		}
		all = append(all, DayBar{X: i * dayWidth, Y: dayHeight - height, Height: height})
	}
	return all
}

// Latest are the days on which something was used, the newest first.
func (s Spend) Latest() (all []SpendLine) {
	for i := range s.Days {
		if d := s.Days[len(s.Days)-1-i]; d.Turns > 0 || d.USD > 0 {
			all = append(all, d)
		}
	}
	return all
}

// spendTable is lines that stand together.
type spendTable struct {
	What, Heading string // what a line is of, and the id of the heading
	path, folder  string
	Lines         []SpendLine
}

func newSpendTable(what, heading, path, folder string, lines []SpendLine) spendTable {
	return spendTable{what, heading, path, folder, lines}
}

// Href is the page of what a line is of.
func (t spendTable) Href(name string) string {
	href := t.path + url.QueryEscape(name)
	if t.folder != "" {
		href += "&group=" + url.QueryEscape(t.folder)
	}
	return href
}
