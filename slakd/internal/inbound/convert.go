// Package inbound turns Slack's events into rows. It is pure, but for the names that it asks for:
// the same event gives the same rows, however often it comes.
package inbound

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// Self is our bot, as auth.test tells.
type Self struct {
	User string // U0ABC
	Bot  string // B0ABC
}

// is says whether somebody is us.
func (me Self) is(user, bot string) bool {
	return user != "" && user == me.User || bot != "" && bot == me.Bot
}

// Names tells how people and channels are called. Events hold their ids alone.
type Names interface {
	// User is the name of a user or bot, "" if nobody knows.
	User(id string) string
	// Chat is what a channel is, with its title; the kind is "" if nobody knows.
	Chat(channel string) (kind msg.ChatKind, title string)
}

// Convert reads an event. One that means nothing to us gives an empty result; one that lacks what
// every such event has gives an error that says what. Direction, source and receiving time of the
// rows are left to whoever stores them.
//
// The ids of rows, unique in their chat:
//
//	<ts>                               a message
//	<ts>:e:<edited ts>                 an edit
//	<ts>:d                             what was deleted
//	<ts>:r:<user>:<emoji>:<event ts>   a reaction; "-" before the emoji of one taken back
//	m:<verb>:<user>:<event ts>         a join or leave
//	slash:<trigger id>                 a slash command
//
// Slack tells of one post twice where it calls us, as a message and as an app_mention: both make
// the same row. It tells of a join or leave by a message of the channel, too, but not in large
// channels, and without saying who invited: only the event of its own is read.
func Convert(e *Event, me Self, names Names) (r adapter.Inbound, err error) {
	switch {
	case e.Message != nil:
		r, err = message(e.Message, me, names)
	case e.Reaction != nil:
		r, err = reaction(e.Reaction, me, names)
	case e.Member != nil:
		r, err = member(e.Member, me, names)
	case e.Pane != nil:
		r, err = pane(e.Pane, names)
	case e.Renamed != nil && e.Renamed.ID != "":
		r = of(e.Renamed.ID, names)
	}
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return r, nil
}

// of is a result about a chat in which there are no rows yet.
func of(channel string, names Names) adapter.Inbound {
	kind, title := names.Chat(channel)
	if kind == "" { // better the old title than none
		return adapter.Inbound{}
	}
	return adapter.Inbound{Chats: []msg.Chat{{JID: jid(channel), Kind: kind, Title: plaintext.Line(title)}}}
}

// pane is a thread that somebody opened beside their work; what is said there comes as messages.
func pane(p *Pane, names Names) (adapter.Inbound, error) {
	if p.Channel == "" || !isTS(p.TS) {
		return adapter.Inbound{}, errors.New("an assistant's pane without a thread")
	}
	r := of(p.Channel, names)
	t := msg.Thread{ChatJID: jid(p.Channel), ID: p.TS, Kind: "assistant_thread"}
	if p.User != "" {
		t.Author = jid(p.User)
	}
	r.Threads = []msg.Thread{t}
	return r, nil
}

// jid is the address of a channel, and of a user as a sender.
func jid(id string) string { return "slack:" + id }

// isTS says whether an id is a message's: seconds, a dot, and what tells the messages of one
// second apart.
func isTS(ts string) bool {
	seconds, rest, ok := strings.Cut(ts, ".")
	return ok && isDigits(seconds) && isDigits(rest) && len(ts) <= 30
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// millis turns an id into the unix milliseconds in it. One that is absurd gives 0, for which the
// time of arrival is taken.
func millis(ts string) int64 {
	const year9999 = 253402300800
	seconds, err := strconv.ParseFloat(ts, 64)
	if err != nil || !(seconds > 0 && seconds < year9999) {
		return 0
	}
	return int64(seconds * 1000)
}
