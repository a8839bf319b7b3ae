package inbound

import (
	"cmp"
	"errors"
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// member converts a join or leave of a guild.
func member(u *discordapi.Update, c *discordapi.MemberChange, verb string, me Self, known *Guilds) (adapter.Inbound,
	error) {
	switch {
	case !discordapi.IsID(c.GuildID):
		return adapter.Inbound{}, errors.New("a member without a guild")
	case c.User == nil || !discordapi.IsID(c.User.ID):
		return adapter.Inbound{}, fmt.Errorf("a member of guild %s without a user", c.GuildID)
	}
	g := known.guilds[c.GuildID]
	if c.User.ID == me.ID || g == nil || !discordapi.IsID(g.system) {
		return adapter.Inbound{}, nil
	}
	p, err := placeOf(c.GuildID, g.system, me, known)
	if err != nil {
		return adapter.Inbound{}, err
	}
	from := me.actor(c.User, &c.Member)
	row := &msg.Message{
		PlatformID: "m:leave:" + c.User.ID + ":" + stamp(u), Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Verb: verb, Content: "left",
	}
	if verb == msg.VerbJoin {
		at := c.JoinedAt.UnixMilli()
		row.PlatformID, row.Content, row.Timestamp = fmt.Sprintf("m:join:%s:%d", c.User.ID, at), "joined",
			adapter.UnixMilli(at)
	}
	return p.of(row), nil
}

// guildJoined converts a guild that the bot was added to, if it was not there before. The guild is the
// sender, since Discord does not say who added the bot.
func guildJoined(g *discordapi.Guild, me Self, known *Guilds) (adapter.Inbound, error) {
	if !discordapi.IsID(g.ID) {
		return adapter.Inbound{}, errors.New("a guild without an id")
	}
	channel := hall(g)
	if known.Has(g.ID) || g.Unavailable || channel == nil {
		return adapter.Inbound{}, nil
	}
	p := place{guild: g.ID, channel: channel.ID}
	p.chat = msg.Chat{JID: me.jid(channel.ID), Kind: msg.ChatGroup, Title: title(channel.Name)}
	at := g.JoinedAt.UnixMilli()
	return p.of(&msg.Message{
		PlatformID: fmt.Sprintf("m:join:%s:%d", me.ID, at),
		Sender:     me.jid(g.ID), SenderName: cmp.Or(plaintext.Line(g.Name), "guild "+g.ID),
		Verb: msg.VerbJoin, Content: "added the bot", Addressed: true, Timestamp: adapter.UnixMilli(at),
	}), nil
}

// hall is a guild's system channel, else its first channel open to everyone, nil for none.
func hall(g *discordapi.Guild) (first *discordapi.Channel) {
	for i := range g.Channels {
		c := &g.Channels[i]
		switch {
		case !discordapi.IsID(c.ID):
		case c.ID == g.SystemChannelID:
			return c
		case c.Type == discordapi.ChannelText && open(c, g.ID) && (first == nil || c.Position < first.Position):
			first = c
		}
	}
	return first
}

// open reports whether everyone may read a channel and write in it.
func open(c *discordapi.Channel, everybody string) bool {
	for _, o := range c.Overwrites {
		if o.ID == everybody && o.Deny&(discordapi.ViewChannel|discordapi.SendMessages) != 0 {
			return false
		}
	}
	return true
}
