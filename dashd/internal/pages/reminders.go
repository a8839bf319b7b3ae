package pages

import "arizuko/pkg/msg"

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
