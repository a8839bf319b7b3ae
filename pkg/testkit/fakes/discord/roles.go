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

// BotRole is the managed role of the bot.
func (g Guild) BotRole() Role {
	in := g.lock()
	defer g.unlock()
	return *g.s.botRole(in)
}

func (s *Server) botRole(in *guild) *Role {
	i := slices.IndexFunc(in.roles, func(r Role) bool { return r.Managed && r.Tags.BotID == s.me.ID })
	require(i >= 0, "the bot is not in guild %s", in.id)
	return &in.roles[i]
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

func (s *Server) roleChanged(in *guild, role *Role) {
	s.toBot(in, Guilds, "GUILD_ROLE_UPDATE", map[string]any{"guild_id": in.id, "role": *role})
}

// deleteRoleOf deletes a role. Its members lose it without events of theirs.
func (s *Server) deleteRoleOf(in *guild, id string) {
	in.roles = slices.DeleteFunc(in.roles, func(r Role) bool { return r.ID == id })
	for _, m := range in.members {
		m.Roles = slices.DeleteFunc(slices.Clone(m.Roles), func(role string) bool { return role == id })
	}
	s.toBot(in, Guilds, "GUILD_ROLE_DELETE", map[string]any{"guild_id": in.id, "role_id": id})
}

// managedRole is the role of a request that changes it.
func (s *Server) managedRole(q *request, g *guild) (*Role, error) {
	if !s.mayIn(g, ManageRoles) {
		return nil, missingPermissions()
	}
	role := g.role(q.path("role"))
	if role == nil {
		return nil, unknown(10011, "Role")
	}
	return role, nil
}

func (s *Server) createRole(q *request, g *guild) (any, error) {
	if !s.mayIn(g, ManageRoles) {
		return nil, missingPermissions()
	}
	role := Role{Name: "new role", Permissions: everyonePermissions.String(), Position: 1}
	if err := q.decode(&role); err != nil {
		return nil, err
	}
	role.ID = s.newID()
	s.addRole(g, role)
	return role, nil
}

func (s *Server) modifyRole(q *request, g *guild) (any, error) {
	role, err := s.managedRole(q, g)
	if err != nil {
		return nil, err
	}
	var body struct {
		Name *string `json:"name"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	set(&role.Name, body.Name)
	s.roleChanged(g, role)
	return *role, nil
}

func (s *Server) deleteRole(q *request, g *guild) (any, error) {
	role, err := s.managedRole(q, g)
	if err != nil {
		return nil, err
	}
	s.deleteRoleOf(g, role.ID)
	return nil, nil
}

func (s *Server) addMemberRole(q *request, g *guild) (any, error) {
	role, err := s.managedRole(q, g)
	if err != nil {
		return nil, err
	}
	m := g.member(q.path("user"))
	if m == nil {
		return nil, unknown(10007, "Member")
	}
	m.Roles = append(m.Roles, role.ID)
	s.toBot(g, GuildMembers, "GUILD_MEMBER_UPDATE", memberEvent{g.id, *m})
	return nil, nil
}

// Permission is a set of permissions.
type Permission uint64

// The permissions that the fake knows. Everyone has some of them in a new guild; Deny revokes any for the bot in a
// channel, and Grant gives it more.
const (
	ManageChannels        Permission = 1 << 4
	AddReactions          Permission = 1 << 6
	ViewChannel           Permission = 1 << 10
	SendMessages          Permission = 1 << 11
	ManageMessages        Permission = 1 << 13
	AttachFiles           Permission = 1 << 15
	ReadMessageHistory    Permission = 1 << 16
	MentionEveryone       Permission = 1 << 17
	ManageRoles           Permission = 1 << 28
	ManageWebhooks        Permission = 1 << 29
	ManageThreads         Permission = 1 << 34
	CreatePublicThreads   Permission = 1 << 35
	CreatePrivateThreads  Permission = 1 << 36
	SendMessagesInThreads Permission = 1 << 38
	SendPolls             Permission = 1 << 49
	PinMessages           Permission = 1 << 51
)

// everyonePermissions are those of @everyone in a new guild.
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
	return s.mayIn(ch.guild, want) && denied&want == 0
}

// mayIn reports whether the bot has permissions in a guild.
func (s *Server) mayIn(g *guild, want Permission) bool {
	return g.member(s.me.ID) != nil && g.permissions()&want == want
}

// permissions are those of the bot in a guild.
func (g *guild) permissions() Permission { return everyonePermissions | g.granted }

// Grant gives the bot permissions in the guild, besides those of everyone and in place of those granted before.
func (g Guild) Grant(granted Permission) {
	in := g.lock()
	defer g.unlock()
	role := g.s.botRole(in)
	in.granted = granted
	role.Permissions = in.permissions().String()
	g.s.roleChanged(in, role)
}

// sees reports whether the bot can see a channel at all.
func (s *Server) sees(ch *channel) bool {
	if ch.info.Type == PrivateThread && ch.threadMember(s.me.ID) == nil && !s.may(ch, ManageThreads) {
		return false
	}
	return s.may(ch, ViewChannel)
}

// hears reports whether the bot gets the messages of a channel that it sees.
func (s *Server) hears(ch *channel) bool {
	return !s.joinToHear || !ch.isThread() || ch.heard || ch.threadMember(s.me.ID) != nil
}
