package inbound

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Hidden is the result of Permissions for a channel whose messages the bot may not read.
const Hidden = "hidden"

// Permissions are Hidden, or a text that changes with the bot's permissions in a channel: its
// roles, and those of the channel. Of a channel that is not known they are "".
func (g *Guilds) Permissions(channel string, me Self) string {
	c, known := g.channels[channel]
	if c.IsThread() && known {
		c, known = g.channels[c.ParentID]
	}
	guild := g.guilds[c.GuildID]
	if !known || guild == nil || !guild.member {
		return ""
	}
	if c.Flags&discordapi.FlagObfuscated != 0 {
		return Hidden
	}
	const wanted = discordapi.ViewChannel | discordapi.ReadMessageHistory
	if guild.permissions(&c, me)&wanted != wanted {
		return Hidden
	}
	sum := fnv.New64a()
	for _, id := range slices.Sorted(maps.Keys(guild.roles)) {
		fmt.Fprint(sum, id, guild.roles[id].Permissions, ";")
	}
	fmt.Fprint(sum, guild.ours, c.Overwrites)
	return fmt.Sprintf("%x", sum.Sum64())
}

// permissions are those of the bot in a channel, as Discord computes them: those of its roles, then as the channel
// changes for everyone, for its roles, and for itself.
func (g *guild) permissions(c *discordapi.Channel, me Self) int64 {
	may := g.roles[c.GuildID].Permissions
	for _, role := range g.ours {
		may |= g.roles[role].Permissions
	}
	if may&discordapi.Administrator != 0 {
		return -1
	}
	apply := func(applies func(id string) bool) {
		var allow, deny int64
		for _, o := range c.Overwrites {
			if applies(o.ID) {
				allow, deny = allow|o.Allow, deny|o.Deny
			}
		}
		may = may&^deny | allow
	}
	apply(func(id string) bool { return id == c.GuildID })
	apply(func(id string) bool { return slices.Contains(g.ours, id) })
	apply(func(id string) bool { return id == me.ID })
	return may
}

// learnOurRoles caches the roles of the bot in a guild. Other members are ignored.
func (g *Guilds) learnOurRoles(guildID string, m *discordapi.Member, me Self) {
	if known := g.guilds[guildID]; known != nil && m.User != nil && m.User.ID == me.ID {
		known.ours, known.member = m.Roles, true
	}
}

// Knows reports whether a channel or thread of a guild is known.
func (g *Guilds) Knows(channel string) bool {
	_, known := g.channels[channel]
	return known
}

// GuildOf is the guild of a channel, "" if that is not known.
func (g *Guilds) GuildOf(channel string) string { return g.channels[channel].GuildID }

// ChannelsOf are the known channels and threads of a guild.
func (g *Guilds) ChannelsOf(guild string) (channels []string) {
	for id, c := range g.channels {
		if c.GuildID == guild && guild != "" {
			channels = append(channels, id)
		}
	}
	slices.Sort(channels)
	return channels
}

// Complete reports whether the channels of all guilds are known.
func (g *Guilds) Complete() bool {
	for _, one := range g.guilds {
		if one.lacks {
			return false
		}
	}
	return true
}

// admins says whether the sender of a row in a guild's channel administers the guild: owns it, or has a role that may
// manage it. Without m, the sender's member, that is only known of the owner.
func (g *Guilds) admins(guildID string, row *msg.Message, m *discordapi.Member) []adapter.Admin {
	known := g.guilds[guildID]
	if known == nil || known.lacks || row.IsBot {
		return nil
	}
	_, user := msg.SplitJID(row.Sender)
	is := user == known.owner && user != ""
	if m == nil && !is {
		return nil
	}
	if m != nil {
		may := known.roles[guildID].Permissions
		for _, role := range m.Roles {
			may |= known.roles[role].Permissions
		}
		is = is || may&(discordapi.Administrator|discordapi.ManageGuild) != 0
	}
	return []adapter.Admin{{ChatJID: row.ChatJID, Sender: row.Sender, Is: is}}
}
