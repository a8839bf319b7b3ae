// Package inbound converts Slack's events into rows. Apart from the lookup of names it is pure: the
// same event always gives the same rows.
package inbound

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// Self is the bot, as auth.test describes it.
type Self struct {
	Platform string // the first part of addresses
	User     string // U0ABC
	Bot      string // B0ABC
	// UserApps are the ids of apps whose posts with a user's own token are that user's.
	UserApps []string
}

// is reports whether a user or bot is the bot itself.
func (me Self) is(user, bot string) bool {
	return user != "" && user == me.User || bot != "" && bot == me.Bot
}

// posts reports whether a message of an app is a user's: one of UserApps has posted it with that user's token.
func (me Self) posts(m *Message, names Names) bool {
	return m.BotID != "" && m.User != "" && m.User != me.User && m.Subtype != "bot_message" &&
		slices.Contains(me.UserApps, m.AppID) && names.Person(m.User)
}

// own reports whether the bot itself has sent a message.
func (me Self) own(m *Message, names Names) bool {
	return me.is(m.User, m.BotID) && !me.posts(m, names)
}

// Names looks up names of users and channels, since events contain only ids.
type Names interface {
	// User is the name of a user or bot, "" if unknown.
	User(id string) string
	// Person reports whether a user is known to be no bot.
	Person(id string) bool
	// Admin reports whether a user is known to administer the workspace.
	Admin(id string) bool
	// Chat is the kind and title of a channel; the kind is "" if unknown.
	Chat(channel string) (kind msg.ChatKind, title string)
}

// Convert converts an event. An event that makes no row gives an empty result; one that lacks a required
// field gives an error that names it. The shell sets direction, source and receiving time of the rows.
//
// The ids of rows, unique in their chat:
//
//	<ts>                               a message
//	<ts>:e:<edited ts>                 an edit
//	<ts>:u:<count>                     messages that the text links to, added later
//	<ts>:d                             a deletion
//	<ts>:r:<user>:<emoji>:<event ts>   a reaction; "-" before the emoji if it was removed, ":h" at the end if the
//	                                   history shows it, with the time of the reading
//	m:<verb>:<user>:<event ts>         a join or leave
//	slash:<trigger id>                 a slash command
//	stop:<user>:<event ts>             a click on the button that stops the agent
//	press:<trigger id>                 the press of a button of a question
//
// Slack sends two events for a message that mentions the bot, message and app_mention: both make the
// same row. It reports joins and leaves by a message in the channel, too, but not in large channels and
// without the inviter: only the member events are read.
func Convert(e *Event, me Self, names Names) (r adapter.Inbound, err error) {
	switch {
	case e.Message != nil:
		r, err = message(e.Message, me, names)
	case e.Reaction != nil:
		r, err = reaction(e.Reaction, me, names)
	case e.Member != nil:
		r, err = member(e.Member, me, names)
	case e.Pane != nil:
		r, err = pane(e.Pane, me, names)
	case e.Stopped != nil:
		r, err = stopped(e.Stopped, me, names)
	case e.Renamed != nil && e.Renamed.ID != "":
		r = me.of(e.Renamed.ID, names)
	}
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	r.Admins = Admins(r.Messages, names)
	return r, nil
}

// Admins says which senders of rows administer the workspace, as far as that is known.
func Admins(rows []*msg.Message, names Names) (all []adapter.Admin) {
	for _, m := range rows {
		if _, user := msg.SplitJID(m.Sender); msg.KindOfJID(m.ChatJID) != msg.ChatDM && !m.IsBot && names.Person(user) {
			all = append(all, adapter.Admin{ChatJID: m.ChatJID, Sender: m.Sender, Is: names.Admin(user)})
		}
	}
	return all
}

// of makes a result about a chat, without rows.
func (me Self) of(channel string, names Names) adapter.Inbound {
	kind, title := names.Chat(channel)
	if kind == "" { // the old title is better than none
		return adapter.Inbound{}
	}
	return adapter.Inbound{Chats: []msg.Chat{{JID: me.jid(channel), Kind: kind, Title: plaintext.Line(title)}}}
}

// pane converts an opened assistant's pane, which is a thread.
func pane(p *Pane, me Self, names Names) (adapter.Inbound, error) {
	if p.Channel == "" || !isTS(p.TS) {
		return adapter.Inbound{}, errors.New("an assistant's pane without a thread")
	}
	r := me.of(p.Channel, names)
	t := msg.Thread{ChatJID: me.jid(p.Channel), ID: p.TS, Kind: "assistant_thread"}
	if p.User != "" {
		t.Author = me.jid(p.User)
	}
	r.Threads = []msg.Thread{t}
	return r, nil
}

// jid is the address of a channel or of a sender.
func (me Self) jid(id string) string { return msg.JID(me.Platform, id) }

// isTS reports whether an id is that of a message: seconds, a dot, and a number within the second.
func isTS(ts string) bool {
	seconds, rest, ok := strings.Cut(ts, ".")
	return ok && isDigits(seconds) && isDigits(rest) && len(ts) <= 30
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// millis returns the unix milliseconds in an id, 0 if it is invalid.
func millis(ts string) int64 {
	seconds, err := strconv.ParseFloat(ts, 64)
	if err != nil || !(seconds > 0 && seconds < math.MaxInt64/1000) {
		return 0
	}
	return adapter.UnixMilli(int64(seconds * 1000))
}
