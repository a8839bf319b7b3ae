package pages

import (
	"net/url"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// ReminderLine is one reminder. LastSlot is when it fired, in unix ms, and LastRow the message that this made; 0 for
// none.
type ReminderLine struct {
	*msg.Reminder
	LastSlot, LastRow int64
}

// PollLine is one poll with its present result.
type PollLine struct {
	*msg.StoredPoll
	Result msg.PollResult
}

// Open reports whether users can vote.
func (p PollLine) Open() bool { return p.State == msg.PollOpen }

// PollOption is an answer of a poll with its votes. Share is its part of the most votes, 0 to 100.
type PollOption struct {
	Text         string
	Votes, Share int
}

// Options are the answers that a poll offers.
func (p PollLine) Options() []PollOption {
	all, most := make([]PollOption, len(p.Poll.Options)), 1
	for i, text := range p.Poll.Options {
		all[i].Text = Line(text)
		if i < len(p.Result.Counts) {
			all[i].Votes = p.Result.Counts[i]
			most = max(most, all[i].Votes)
		}
	}
	for i := range all {
		all[i].Share = 100 * all[i].Votes / most
	}
	return all
}

// Spend is the page of the tokens and dollars that agents have used.
type Spend struct {
	Day    string // the day that the groups and chats are of, "" for all that are shown
	Folder string // the group that all is of, "" for all groups
	Chart  Chart
	Days   []factrows.SpendRow // on which something was used, the newest first
	Groups []factrows.SpendRow
	Chats  []factrows.SpendRow
	Titles Titles // of Chats
}

// Whole is the sum of the days.
func (s Spend) Whole() (sum factrows.Spend) {
	for _, d := range s.Days {
		sum.Turns, sum.CostUSD = sum.Turns+d.Turns, sum.CostUSD+d.CostUSD
	}
	return sum
}

// dollars is an amount with enough digits to differ from nothing; tokens have a column of their own.
func dollars(s factrows.Spend) string {
	switch {
	case s.CostUSD > 0:
		return factrows.Spend{CostUSD: s.CostUSD}.Words()
	case s.Turns > 0:
		return "not reported"
	}
	return "$0.00"
}

// spendLink is the page of a line's subject: its name is the end of a path. folder is the group of the list, "" for
// all.
func spendLink(path, name, folder string) string {
	link := path + url.QueryEscape(name)
	if folder != "" {
		link += "&group=" + url.QueryEscape(folder)
	}
	return link
}
