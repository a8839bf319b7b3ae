package pages

import (
	"net/url"

	"arizuko/pkg/facts"
)

// Messages is a list of messages, the newest first. Times are unix ms.
type Messages struct {
	Filter MessageFilter
	Lines  []MessageLine
	Newest string // address of the first page, "" on it
	Next   string // address of the next page, "" on the last one
	// Through is when the last message was stored that this page looked at, if it ends because it looked at as many as
	// it may.
	Through int64
	Problem string   // why there is no list
	Wrong   string   // the field that it is about: text, since, until, or ""
	Lag     Lag      // of a search
	Groups  []string // to choose from
	Now     int64
}

// Lag is how far the full-text index is behind.
type Lag struct {
	Rows  int
	About bool // the number is not exact
	Since int64
}

// MessageFilter is what the form of the list shows. Times are as fields of a form have them, in UTC.
type MessageFilter struct {
	Text, Chat, Group, Sender                string
	Since, Until                             string
	Directions, Dispositions, Reasons, State []Option
	Active                                   string // the names of what is filtered, "" for nothing
}

// Option is a value that a field may have.
type Option struct {
	Value, Text string
	Selected    bool
}

// MessageLine is one message.
type MessageLine struct {
	ID          int64
	Out         bool
	Who         string // who wrote it
	Chat, Title string // the chat, and its title if that is known
	Group       string // that the message was routed to
	Text        string
	Kind        string // "" for an ordinary message
	State       string // what became of it, in words
	Bad         bool   // it was not delivered, or dropped
	At          int64
}

// Place is the chat's title, else its address.
func (l MessageLine) Place() string { return title(l.Title, l.Chat) }

// ChatPath is the list of the chat's messages.
func (l MessageLine) ChatPath() string { return "/messages?" + url.Values{"chat": {l.Chat}}.Encode() }

// Why is what became of one message.
type Why struct {
	ID      int64
	Out     bool
	Fields  []Field
	Text    string
	Cut     bool // Text is the beginning
	Heard   []Heard
	Change  string // that it was edited or deleted since, "" if not
	Steps   []WhyStep
	Took    string // from the first step to the last part, "" if nothing was delivered
	Open    []WhyOpen
	Near    []NearMessage // other messages of its path
	Replay  *ReplayForm
	Request string // code of the request that it waits for
	Now     int64
}

// Heard is what a program heard in an audio file of a message, or why it heard nothing.
type Heard struct {
	File    string
	Text    string
	Cut     bool // Text is the beginning
	Problem string
}

// Field is a fact about a message. Path leads to more, "" for nowhere.
type Field struct{ Name, Text, Path string }

// WhyStep is what happened to a message at a time.
type WhyStep struct {
	Day, Time string // in the zone that Day names; Day where it is another than that of the step before
	After     string // since the step before, "" for the first one
	Text      string
	Reason    string
	Owner     string
	Links     []Link
	Main      bool
}

// WhyOpen is what is still to come.
type WhyOpen struct {
	Text, Owner string
	Links       []Link
	Page        facts.Page // where an operator changes that, if anywhere
}

// NearMessage is a message that belongs to another one.
type NearMessage struct {
	ID              int64
	Relation, Place string
	Text            string
}

// ReplayForm replays a message. Copy is the copy that was made before, 0 for none: then it asks once more.
type ReplayForm struct {
	ID, Copy int64
	Out      bool
	Chat     string
}

// Lost is the messages that were not delivered, dropped, or wait for an operator.
type Lost struct {
	Counts  []LostGroup
	List    *LostList    // of one reason
	Confirm *LostConfirm // what is to be replayed, in place of the list
	Now     int64
}

// Any reports whether there is one.
func (l Lost) Any() bool {
	for _, g := range l.Counts {
		if len(g.Counts) > 0 {
			return true
		}
	}
	return false
}

// LostGroup is counts that belong together.
type LostGroup struct {
	Title  string
	Counts []LostCount
}

// LostCount is how many messages have a reason.
type LostCount struct {
	Reason, Text, Path string
	Count              string
	Current            bool
}

// LostList is the messages of a reason.
type LostList struct {
	Title, Reason string
	Key           string // of the reason, in forms
	Lines         []LostLine
	Next          string
	Replay        bool   // they can be replayed
	AllPath       string // where all of them are confirmed
	Verb          string // of the button: what a replay does
}

// LostLine is a message of the list. Copy is its copy, 0 for none.
type LostLine struct {
	MessageLine
	Copy int64
}

// LostConfirm is what will be replayed.
type LostConfirm struct {
	Title, Key, IDs, Back, Verb string
	Count                       int
	Before                      int64  // only messages that are older than this one, 0 for all
	Left                        bool   // there are older ones that were not looked at
	Next                        string // where those are confirmed
	Chats                       []LostChat
}

// LostChat is a chat and how many messages of it are replayed.
type LostChat struct {
	Chat, Title string
	Count       int
}

// Place is the chat's title, else its address.
func (c LostChat) Place() string { return title(c.Title, c.Chat) }
