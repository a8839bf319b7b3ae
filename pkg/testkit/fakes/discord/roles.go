package discord

import (
	"slices"
	"strconv"
)

// Role creates a role that can be mentioned.
func (g Guild) Role(name string) Role {
	in := g.lock()
	defer g.unlock()
	role := Role{ID: g.s.newID(), Name: name, Position: len(in.roles), Permissions: "0", Mentionable: true}
	g.s.addRole(in, role)
	return role
}

// Appoint gives a member a role that may manage the guild. Without the intent for members, the bot gets no event.
func (g Guild) Appoint(user User) {
	in := g.lock()
	defer g.unlock()
	m := in.member(user.ID)
	require(m != nil, "%s is not in guild %s", user.Name(), g.ID)
	role := Role{ID: g.s.newID(), Name: "admins", Position: len(in.roles), Permissions: ManageGuild.String()}
	g.s.addRole(in, role)
	m.Roles = append(m.Roles, role.ID)
	g.s.toBot(in, GuildMembers, "GUILD_MEMBER_UPDATE", memberEvent{g.ID, *m})
}

// BotRole is the managed role of the bot.
func (g Guild) BotRole() Role {
	in := g.lock()
	defer g.unlock()
	i := slices.IndexFunc(in.roles, func(r Role) bool { return r.Managed && r.Tags.BotID == g.s.me.ID })
	require(i >= 0, "the bot is not in guild %s", in.id)
	return in.roles[i]
}

// toBot emits an event of a guild, if the bot is a member.
func (s *Server) toBot(in *guild, need Intent, name string, d any) {
	if in.member(s.me.ID) != nil {
		s.emit(need, name, d)
	}
}

func (s *Server) addRole(in *guild, role Role) {
	in.roles = append(in.roles, role)
	s.toBot(in, Guilds, "GUILD_ROLE_CREATE", map[string]any{"guild_id": in.id, "role": role})
}

// Permission is a set of permissions.
type Permission uint64

// The permissions that the fake knows. Everyone has them in a guild; Deny revokes any for the bot in a channel.
const (
	ManageGuild           Permission = 1 << 5
	AddReactions          Permission = 1 << 6
	ViewChannel           Permission = 1 << 10
	SendMessages          Permission = 1 << 11
	AttachFiles           Permission = 1 << 15
	ReadMessageHistory    Permission = 1 << 16
	MentionEveryone       Permission = 1 << 17
	CreatePublicThreads   Permission = 1 << 35
	CreatePrivateThreads  Permission = 1 << 36
	SendMessagesInThreads Permission = 1 << 38
	SendPolls             Permission = 1 << 49
)

// everyonePermissions are those of @everyone in a guild.
const everyonePermissions = AddReactions | ViewChannel | SendMessages | AttachFiles | ReadMessageHistory |
	MentionEveryone | CreatePublicThreads | CreatePrivateThreads | SendMessagesInThreads | SendPolls

// String is the set as in JSON: bits in decimal.
func (p Permission) String() string { return strconv.FormatUint(uint64(p), 10) }

// may reports whether the bot has permissions in a channel. Threads have those of their parent.
func (s *Server) may(ch *channel, want Permission) bool {
	if ch.guild == nil {
		return true
	}
	denied := ch.denied
	if ch.parent != nil && ch.isThread() {
		denied |= ch.parent.denied
	}
	return ch.guild.member(s.me.ID) != nil && everyonePermissions&want == want && denied&want == 0
}

// sees reports whether the bot can see a channel at all.
func (s *Server) sees(ch *channel) bool {
	if ch.info.Type == PrivateThread && ch.threadMember(s.me.ID) == nil {
		return false
	}
	return s.may(ch, ViewChannel)
}

// hears reports whether the bot gets the messages of a channel that it sees.
func (s *Server) hears(ch *channel) bool {
	return !s.joinToHear || !ch.isThread() || ch.heard || ch.threadMember(s.me.ID) != nil
}
