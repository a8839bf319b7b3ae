// Package inbound converts events of Discord's gateway into rows. It is pure: the same event always
// gives the same rows.
package inbound

import (
	"errors"
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// Self is the bot, as READY describes it.
type Self struct {
	Platform string // the first part of addresses
	ID       string
}

// Convert converts an event, given the facts about guilds before it; Guilds.Lacks must return "".
// An event that makes no row gives an empty result; one that lacks a required field gives an error that
// names it. The shell sets direction, source and receiving time of the rows, and the timestamp if the
// event has none.
//
// The ids of rows, unique in their chat:
//
//	<message>                                     a message; also an update of a bot's answer to a command
//	<message>:e:<milliseconds>                    an edit; a link preview is none
//	<message>:d                                   a deletion
//	<message>:r:<user>:<emoji>:<session>.<event>  a reaction; "-" before the emoji if it was removed
//	<message>:v:<user>:<answer>:<session>.<event> a vote; "-" before the answer if it was removed
//	<message>:v:<user>:<answer>:<session>.missed  a vote read by MissedVotes
//	<message>:end, <message>:result               the end of a poll, with and without its counts
//	i:<interaction>                               a slash command, which cannot be replied to
//	m:join:<user>:<milliseconds>                  a member, or the bot, joined the guild
//	m:leave:<user>:<session>.<event>              a member left it
//
// Discord sends no time with reactions and leaves. The number of the event in its gateway session tells
// a redelivered event from a second one. Joins and leaves happen in a guild, not in a channel: their
// rows are in the guild's system channel, if it has one. The join of the bot is in the first channel
// open to everyone, if there is no system channel.
func Convert(u *discordapi.Update, me Self, known *Guilds) (adapter.Inbound, error) {
	if u == nil {
		return adapter.Inbound{}, errors.New("no event")
	}
	var r adapter.Inbound
	var err error
	switch {
	case u.Message != nil && u.Message.Type == discordapi.MessagePollResult:
		r, err = pollResult(u.Message, me, known)
	case u.EditedMessage != nil && finalized(u.EditedMessage):
		r, err = pollEnd(u.EditedMessage, me, known)
	case u.Vote != nil:
		r, err = vote(u, u.Vote, msg.VoteAdds, me, known)
	case u.VoteGone != nil:
		r, err = vote(u, u.VoteGone, msg.VoteRemoves, me, known)
	case u.Message != nil:
		r, err = message(u.Message, me, known, false)
	case u.EditedMessage != nil:
		r, err = message(u.EditedMessage, me, known, true)
	case u.Deleted != nil:
		r, err = deleted(u.Deleted, me, known)
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
		r, err = thread(u.Channel, me, known)
	case u.Interaction != nil:
		r, err = interaction(u.Interaction, me, known)
	}
	if err != nil {
		return adapter.Inbound{}, fmt.Errorf("%s %d: %w", u.Type, u.Sequence, err)
	}
	return r, nil
}

// place is a chat and, if any, a thread of it.
type place struct {
	guild, channel, thread string // ids, guild "" in private
	chat                   msg.Chat
	threads                []msg.Thread // the thread, if there is one
}

// placeOf is the place of an event that names a channel, and a guild unless it is private.
func placeOf(guild, channel string, me Self, known *Guilds) (place, error) {
	if !discordapi.IsID(channel) {
		return place{}, errors.New("no channel")
	}
	c := known.channels[channel]
	if known.Private(guild, channel) {
		return place{channel: channel, chat: msg.Chat{JID: me.dm(channel), Kind: msg.ChatDM}}, nil
	}
	if c.ID == "" {
		c = discordapi.Channel{ID: channel}
	}
	if guild == "" { // as in answers of the REST API
		guild = c.GuildID
	}
	p := place{guild: guild, channel: channel}
	if c.IsThread() && discordapi.IsID(c.ParentID) {
		p.thread, p.channel = channel, c.ParentID
		p.threads = []msg.Thread{threadOf(&c, me, known)}
	}
	p.chat = msg.Chat{JID: me.jid(p.channel), Kind: msg.ChatGroup, Title: title(known.channels[p.channel].Name)}
	return p, nil
}

// of makes a result about a place, with rows. A chat whose name is not known keeps its name.
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

// with names a private chat after the user in it.
func (p *place) with(row *msg.Message) {
	if p.isDM() {
		p.chat.Title = row.SenderName
	}
}

// isDM reports whether the place is a private chat.
func (p *place) isDM() bool { return p.chat.Kind == msg.ChatDM }

// threadOf is the row of a thread.
func threadOf(c *discordapi.Channel, me Self, known *Guilds) msg.Thread {
	t := msg.Thread{ChatJID: me.jid(c.ParentID), ID: c.ID, Title: plaintext.Line(c.Name), Kind: "public_thread"}
	switch parent := known.channels[c.ParentID]; {
	case parent.IsForum():
		t.Kind = "forum_post"
	case c.Type == discordapi.ChannelPrivateThread:
		t.Kind = "private_thread"
	case c.Type == discordapi.ChannelAnnouncementThread:
		t.Kind = "announcement_thread"
	}
	if discordapi.IsID(c.OwnerID) {
		t.Author = me.jid(c.OwnerID)
	}
	return t
}

// dm is the address of a private chat.
func (me Self) dm(channel string) string { return msg.JID(me.Platform, "dm-"+channel) }

// jid is the address of a channel or of a sender.
func (me Self) jid(id string) string { return msg.JID(me.Platform, id) }

// title is a channel's name as users write it, "" for none.
func title(name string) string {
	if name = plaintext.Line(name); name == "" {
		return ""
	}
	return "#" + name
}
