package pages

// RemindersPage is a list of reminders.
type RemindersPage struct {
	Choices []Choice
	Of      string // what the list is about in words, "" for all active ones
	Lines   []ReminderLine
	More    string // address of what follows, "" for nothing
	Now     int64
}

// ReminderLine is one reminder. Times are unix ms, 0 for none.
type ReminderLine struct {
	ID                        int64
	Folder, Chat, Title       string // Title is the chat's
	Topic, Body               string
	Prompt                    bool   // the agent answers its body; else the body is sent
	Repeats                   string // its schedule, "" if it fires once
	Zone                      string
	Next, Last                int64 // when it fires, and when it fired
	LastRow                   int64 // the message that this made
	State, Error, By, EndedBy string
	CanCancel                 bool
}

// ChatName is the chat's title, else its address.
func (r ReminderLine) ChatName() string { return title(r.Title, r.Chat) }

// PollsPage is a list of polls, the newest first.
type PollsPage struct {
	Choices []Choice
	Lines   []PollLine
	Older   string // address of what follows, "" for nothing
	Now     int64
}

// PollLine is one poll. Times are unix ms, 0 for none.
type PollLine struct {
	ID, Message              int64
	Folder, Chat, Title      string // Title is the chat's
	Question                 string
	Options                  []PollOption
	Voters                   int
	Multiple, Open           bool
	CreatedAt, Closes, Ended int64
}

// PollOption is an answer of a poll with its votes. Share is its part of the most votes, 0 to 100.
type PollOption struct {
	Text         string
	Votes, Share int
}

// ChatName is the chat's title, else its address.
func (p PollLine) ChatName() string { return title(p.Title, p.Chat) }
