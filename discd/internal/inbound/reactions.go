package inbound

import (
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// reaction converts a reaction that was added or removed.
func reaction(u *discordapi.Update, r *discordapi.Reaction, sign string, me Self, known *Guilds) (adapter.Inbound,
	error) {
	p, err := placeOf(r.GuildID, r.ChannelID, me, known)
	switch {
	case err != nil:
		return adapter.Inbound{}, err
	case !discordapi.IsID(r.MessageID):
		return adapter.Inbound{}, fmt.Errorf("a reaction in %s without a message", p.chat.JID)
	case !discordapi.IsID(r.UserID):
		return adapter.Inbound{}, fmt.Errorf("a reaction to message %s in %s without a user", r.MessageID, p.chat.JID)
	case r.Emoji == (discordapi.Emoji{}):
		return adapter.Inbound{}, fmt.Errorf("a reaction to message %s in %s without an emoji", r.MessageID, p.chat.JID)
	case r.UserID == me.ID:
		return p.of(), nil
	}
	from := adapter.Actor{JID: me.jid(r.UserID), Name: known.nameOf(r.GuildID, r.UserID)}
	if r.Member != nil && r.Member.User != nil {
		from.Name, from.Bot = userName(r.Member.User, r.Member), r.Member.User.Bot
	}
	content := sign + emoji(r.Emoji)
	return p.of(&msg.Message{
		PlatformID: fmt.Sprintf("%s:r:%s:%s:%s", r.MessageID, r.UserID, content, stamp(u)),
		Sender:     from.JID, SenderName: from.Name, IsBot: from.Bot,
		Verb: msg.VerbReaction, Content: content, TargetID: r.MessageID,
	}), nil
}

// emoji is the content of a reaction; an emoji of a guild is "name:id".
func emoji(e discordapi.Emoji) string {
	switch name := plaintext.Line(e.Name); {
	case e.ID == "":
		return name
	case name == "":
		return "gone:" + e.ID
	default:
		return name + ":" + e.ID
	}
}

// stamp identifies an event.
func stamp(u *discordapi.Update) string { return fmt.Sprintf("%s.%d", u.Session, u.Sequence) }
