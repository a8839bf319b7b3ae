// Package inbound turns the events of Discord's gateway into rows. It is pure: the same event
// gives the same rows, however often it comes.
package inbound

import (
	"errors"
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// Self is our bot, as the gateway tells when a session begins.
type Self struct {
	ID string
}

// Convert reads an event, with what is known of the guilds before it; Guilds.Lacks must be "". An
// event that means nothing to us gives an empty result; one that lacks what every such event has
// gives an error that says what. Direction, source and receiving time of the rows are left to
// whoever stores them, and so is the timestamp where the event has none.
//
// The ids of rows, unique in their chat:
//
//	<message>                                     a message
//	<message>:e:<milliseconds>                    an edit, of which a link's preview is none
//	<message>:d                                   a deletion
//	<message>:r:<user>:<emoji>:<session>.<event>  a reaction; "-" before the emoji of one taken back
//	i:<interaction>                               a slash command, which is no message to reply to
//	m:join:<user>:<milliseconds>                  somebody, or our bot, came to the guild
//	m:leave:<user>:<session>.<event>              somebody left it
//
// Of reactions and leaves Discord tells no time. The number of the event in its session of the
// gateway tells one that comes again from a second one. Joins and leaves happen in a guild, not in
// a channel: their rows stand in the channel in which the guild tells of itself, if it has one.
// Our own bot says hello in the first channel that is open to everybody, if there is no such one.
func Convert(u *discordapi.Update, me Self, known *Guilds) (adapter.Inbound, error) {
	if u == nil {
		return adapter.Inbound{}, errors.New("no event")
	}
	var r adapter.Inbound
	var err error
	switch {
	case u.Message != nil:
		r, err = message(u.Message, me, known, false)
	case u.EditedMessage != nil:
		r, err = message(u.EditedMessage, me, known, true)
	case u.Deleted != nil:
		r, err = deleted(u.Deleted, known)
	case u.Reaction != nil:
		r, err = reaction(u, u.Reaction, "", me, known)
	case u.ReactionGone != nil:
		r, err = reaction(u, u.ReactionGone, "-", me, known)
	case u.MemberJoined != nil:
		r, err = member(u, u.MemberJoined, msg.VerbJoin, me, known)
	case u.MemberLeft != nil:
		r, err = member(u, u.MemberLeft, msg.VerbLeave, me, known)
	case u.Guild != nil:
		r, err = guildJoined(u.Guild, me, known)
	case u.Channel != nil:
		r, err = thread(u.Channel, known)
	case u.Interaction != nil:
		r, err = command(u.Interaction, known)
	}
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("%s %d: %w", u.Type, u.Sequence, err)
	}
	return r, nil
}

// place is where something stands: a chat and, if any, a thread of it.
type place struct {
	guild, channel, thread string // ids, guild "" in private
	chat                   msg.Chat
	threads                []msg.Thread // the thread, if there is one
}

// placeOf is the place of an event that names a guild, or none, and a channel.
func placeOf(guild, channel string, known *Guilds) (place, error) {
	if !discordapi.IsID(channel) {
		return place{}, errors.New("no channel")
	}
	c := known.channels[channel]
	if known.Private(guild, channel) {
		return place{channel: channel, chat: msg.Chat{JID: dm(channel), Kind: msg.ChatDM}}, nil
	}
	if c.ID == "" {
		c = discordapi.Channel{ID: channel}
	}
	if guild == "" { // as in what the REST API tells
		guild = c.GuildID
	}
	p := place{guild: guild, channel: channel}
	if c.IsThread() && discordapi.IsID(c.ParentID) {
		p.thread, p.channel = channel, c.ParentID
		p.threads = []msg.Thread{threadOf(&c, known)}
	}
	p.chat = msg.Chat{JID: jid(p.channel), Kind: msg.ChatGroup, Title: title(known.channels[p.channel].Name)}
	return p, nil
}

// of is a result about a place, with rows. A chat whose name is not known keeps the one it has.
func (p *place) of(rows ...*msg.Message) adapter.Inbound {
	for _, m := range rows {
		m.ChatJID, m.ThreadID, m.Topic = p.chat.JID, p.thread, p.thread
	}
	r := adapter.Inbound{Threads: p.threads, Messages: rows}
	if p.chat.Title != "" {
		r.Chats = []msg.Chat{p.chat}
	}
	return r
}

// with names a private chat by whom we hear there.
func (p *place) with(row *msg.Message) {
	if p.isDM() {
		p.chat.Title = row.SenderName
	}
}

// isDM reports whether the place is a private chat.
func (p *place) isDM() bool { return p.chat.Kind == msg.ChatDM }

// threadOf is what is known of a thread.
func threadOf(c *discordapi.Channel, known *Guilds) msg.Thread {
	t := msg.Thread{ChatJID: jid(c.ParentID), ID: c.ID, Title: plaintext.Line(c.Name), Kind: "public_thread"}
	switch parent := known.channels[c.ParentID]; {
	case parent.IsForum():
		t.Kind = "forum_post"
	case c.Type == discordapi.ChannelPrivateThread:
		t.Kind = "private_thread"
	case c.Type == discordapi.ChannelAnnouncementThread:
		t.Kind = "announcement_thread"
	}
	if discordapi.IsID(c.OwnerID) {
		t.Author = jid(c.OwnerID)
	}
	return t
}

// dm is the address of a private chat.
func dm(channel string) string { return "discord:dm-" + channel }

// jid is the address of a channel, and of a user as a sender.
func jid(id string) string { return "discord:" + id }

// title is a channel's name as people write it, "" for none.
func title(name string) string {
	if name = plaintext.Line(name); name == "" {
		return ""
	}
	return "#" + name
}

// millis is a time in unix milliseconds; one that is absurd gives 0, for which the time of arrival
// is taken.
func millis(ms int64) int64 {
	const year9999 = 253402300800_000
	if ms <= 0 || ms > year9999 {
		return 0
	}
	return ms
}
