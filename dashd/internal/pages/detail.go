package pages

import (
	"net/url"

	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// ChatPath is the page of a chat.
func ChatPath(jid string) string { return (&url.URL{Path: "/chats/" + jid}).String() }

// PersonPath is the page of a sender.
func PersonPath(sender string) string { return (&url.URL{Path: "/senders/" + sender}).String() }

// OneChat is the page of one chat: of each kind of rows the newest ones.
type OneChat struct {
	ChatRow
	Fixed     bool              // its address names its group
	Request   *factrows.Request // the newest, nil for none
	Routes    Routes            // that can match a message of it
	Messages  Messages
	Turns     List[*msg.Turn]
	Windows   List[rows.OpenWindow]
	Reminders List[ReminderLine]
	Polls     List[PollLine]
	Now       int64
}

// Person is the page of one sender.
type Person struct {
	ID       string
	Names    []string // the newest first
	Operator bool
	Asked    rows.Asked
	Chats    []PersonChat // the one with the newest message first
	Titles   Titles       // of Chats
	Roles    []GroupRoles // the sender's own
	Messages Messages
	Turns    List[*msg.Turn]
	Now      int64
}

// PersonChat is a chat that a sender has written in.
type PersonChat struct {
	rows.SenderChat
	Home string // the group that answers, "" for none
	Rate int    // of the group, turns an hour; 0 for no limit
}
