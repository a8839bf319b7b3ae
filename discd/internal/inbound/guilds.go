package inbound

import (
	"cmp"
	"slices"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter/plaintext"
)

// maxNames bounds the names of users that are cached.
const maxNames = 10_000

// Guilds caches the gateway's facts about guilds, since later events contain only ids. It is not
// safe for concurrent use.
type Guilds struct {
	guilds   map[string]*guild
	channels map[string]discordapi.Channel // threads too
	names    map[string]string             // of users, by guild and user
}

type guild struct {
	name    string
	owner   string
	system  string // its system channel, "" for none
	roles   map[string]discordapi.Role
	ourRole string   // the managed role of the bot, "" for none
	ours    []string // the roles of the bot
	member  bool     // ours is known
	lacks   bool     // only its id is known
}

// NewGuilds makes an empty cache.
func NewGuilds() *Guilds {
	return &Guilds{guilds: map[string]*guild{}, channels: map[string]discordapi.Channel{}, names: map[string]string{}}
}

// Lacks returns the channel that has to be added before an event can be converted, "" for none: events
// of messages do not say whether their channel is a thread, and of which channel.
func (g *Guilds) Lacks(u *discordapi.Update) (channel string) {
	channel = u.Place.ChannelID
	if _, known := g.channels[channel]; known || u.Place.GuildID == "" || !discordapi.IsID(channel) {
		return ""
	}
	return channel
}

// Private reports whether an event that names a guild, "" for none, and a channel is from a private
// chat. Messages of the REST API name no guild.
func (g *Guilds) Private(guild, channel string) bool {
	_, known := g.channels[channel]
	return guild == "" && !known
}

// Has reports whether a guild is known.
func (g *Guilds) Has(guild string) bool { return g.guilds[guild] != nil }

// Add caches a channel of a guild.
func (g *Guilds) Add(c discordapi.Channel) {
	if c.ID != "" && c.Type != discordapi.ChannelDM && c.Type != discordapi.ChannelGroupDM {
		g.channels[c.ID] = c
	}
}

// Learn caches an event's facts about guilds.
func (g *Guilds) Learn(u *discordapi.Update, me Self) {
	switch {
	case u.Ready != nil:
		g.learnAll(u.Ready.Guilds, me)
	case u.Guild != nil:
		g.learnGuild(u.Guild, me)
	case u.GuildUpdate != nil:
		g.learnGuild(u.GuildUpdate, me)
	case u.GuildGone != nil && !u.GuildGone.Unavailable:
		g.forget(u.GuildGone.ID)
	case u.RoleChange != nil:
		g.learnRole(u.RoleChange.GuildID, u.RoleChange.Role, me)
	case u.RoleGone != nil && g.Has(u.RoleGone.GuildID):
		delete(g.guilds[u.RoleGone.GuildID].roles, u.RoleGone.RoleID)
	case u.MemberChanged != nil:
		g.learnOurRoles(u.MemberChanged.GuildID, &u.MemberChanged.Member, me)
	case u.Channel != nil:
		g.Add(*u.Channel)
	case u.ChannelGone != nil:
		delete(g.channels, u.ChannelGone.ID)
	case u.ThreadList != nil:
		for _, c := range u.ThreadList.Threads {
			g.addIn(u.ThreadList.GuildID, c)
		}
	case u.Message != nil:
		g.learnNames(u.Message)
	case u.Reaction != nil && u.Reaction.Member != nil && u.Reaction.Member.User != nil:
		g.learnName(u.Reaction.GuildID, u.Reaction.Member.User, u.Reaction.Member)
	}
}

// learnAll sets the guilds that the bot is in. It may have been removed from others while it was not
// connected.
func (g *Guilds) learnAll(now []discordapi.Guild, me Self) {
	for id := range g.guilds {
		if !slices.ContainsFunc(now, func(other discordapi.Guild) bool { return other.ID == id }) {
			g.forget(id)
		}
	}
	for i := range now {
		g.learnGuild(&now[i], me)
	}
}

func (g *Guilds) learnGuild(from *discordapi.Guild, me Self) {
	if from.ID == "" {
		return
	}
	known := g.guilds[from.ID]
	if known == nil {
		known = &guild{roles: map[string]discordapi.Role{}, lacks: true}
		g.guilds[from.ID] = known
	}
	if from.Unavailable {
		known.lacks = true
		return
	}
	known.name, known.owner, known.system, known.lacks = from.Name, from.OwnerID, from.SystemChannelID, false
	for i := range from.Members {
		g.learnOurRoles(from.ID, &from.Members[i], me)
	}
	for _, r := range from.Roles {
		g.learnRole(from.ID, r, me)
	}
	for _, c := range from.Channels {
		g.addIn(from.ID, c)
	}
	for _, c := range from.Threads {
		g.addIn(from.ID, c)
	}
}

// addIn is Add for the channels in an event about their guild; they don't name it.
func (g *Guilds) addIn(guild string, c discordapi.Channel) {
	c.GuildID = guild
	g.Add(c)
}

func (g *Guilds) learnRole(guildID string, r discordapi.Role, me Self) {
	known := g.guilds[guildID]
	if known == nil || r.ID == "" {
		return
	}
	known.roles[r.ID] = r
	if r.Tags != nil && r.Tags.BotID == me.ID {
		known.ourRole = r.ID
	}
}

func (g *Guilds) forget(guild string) {
	delete(g.guilds, guild)
	for id, c := range g.channels {
		if c.GuildID == guild {
			delete(g.channels, id)
		}
	}
}

func (g *Guilds) learnNames(m *discordapi.Message) {
	if m.Author != nil && m.WebhookID == "" {
		g.learnName(m.GuildID, m.Author, m.Member)
	}
	for i := range m.Mentions {
		g.learnName(m.GuildID, &m.Mentions[i], m.Mentions[i].Member)
	}
}

func (g *Guilds) learnName(guild string, u *discordapi.User, m *discordapi.Member) {
	if len(g.names) >= maxNames {
		clear(g.names)
	}
	g.names[guild+" "+u.ID] = userName(u, m)
}

// nameOf is the cached name of a user in a guild.
func (g *Guilds) nameOf(guild, user string) string {
	return cmp.Or(g.names[guild+" "+user], "user "+user)
}

// roleName is the name of a role.
func (g *Guilds) roleName(guildID, role string) string {
	name := ""
	if known := g.guilds[guildID]; known != nil {
		name = plaintext.Line(known.roles[role].Name)
	}
	return cmp.Or(name, "role "+role)
}

// ourRole is the bot's role in a guild, "" for none.
func (g *Guilds) ourRole(guildID string) string {
	if known := g.guilds[guildID]; known != nil {
		return known.ourRole
	}
	return ""
}

func (g *Guilds) channelName(channel string) string {
	return cmp.Or(plaintext.Line(g.channels[channel].Name), "channel "+channel)
}
