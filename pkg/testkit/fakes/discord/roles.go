package discord

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The documented limits of roles.
const (
	maxRoles    = 250
	maxRoleName = 100
)

// Role creates a role that can be mentioned.
func (g Guild) Role(name string) Role {
	role := Role{Name: name, Permissions: "0", Mentionable: true}
	g.act(func(in *guild) error {
		role.ID, role.Position = g.s.newID(), len(in.roles)
		g.s.addRole(in, role)
		return nil
	})
	return role
}

// RenameRole changes the name of a role.
func (g Guild) RenameRole(id, name string) {
	g.act(func(in *guild) error {
		role := in.role(id)
		if role == nil {
			return fmt.Errorf("no role %s in guild %s", id, g.ID)
		}
		role.Name = name
		g.s.roleChanged(in, role)
		return nil
	})
}

// DeleteRole deletes a role.
func (g Guild) DeleteRole(id string) {
	g.act(func(in *guild) error {
		if role := in.role(id); role == nil || id == in.id || role.Managed {
			return fmt.Errorf("no role %s that can be deleted in guild %s", id, g.ID)
		}
		g.s.deleteRoleOf(in, id)
		return nil
	})
}

// BotRole is the managed role of the bot.
func (g Guild) BotRole() (found Role) {
	g.act(func(in *guild) error {
		role, err := g.botRole(in)
		if err == nil {
			found = *role
		}
		return err
	})
	return found
}

func (g Guild) botRole(in *guild) (*Role, error) {
	i := slices.IndexFunc(in.roles, func(r Role) bool { return r.Managed && r.Tags.BotID == g.s.me.ID })
	if i < 0 {
		return nil, fmt.Errorf("the bot is not in guild %s", g.ID)
	}
	return &in.roles[i], nil
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

// setRole gives a role to a member, or takes it away.
func (s *Server) setRole(in *guild, m *Member, role string, on bool) {
	if slices.Contains(m.Roles, role) == on {
		return
	}
	m.Roles = slices.DeleteFunc(slices.Clone(m.Roles), func(id string) bool { return id == role })
	if on {
		m.Roles = append(m.Roles, role)
	}
	s.memberChanged(in, m)
}

// memberChanged emits a change of a member: of the bot always, of others with the intent.
func (s *Server) memberChanged(in *guild, m *Member) {
	need := GuildMembers
	if m.User.ID == s.me.ID {
		need = Guilds
	}
	if in.member(s.me.ID) != nil {
		s.emit(need, "GUILD_MEMBER_UPDATE", withGuild(in.id, *m))
	}
}

// SetRole gives a role to a member, or takes it away.
func (g Guild) SetRole(user User, role Role, on bool) {
	g.act(func(in *guild) error {
		m := in.member(user.ID)
		if m == nil || in.role(role.ID) == nil {
			return fmt.Errorf("%s cannot have role %s in guild %s", user.Name(), role.Name, g.ID)
		}
		g.s.setRole(in, m, role.ID, on)
		return nil
	})
}

// roleRequest is the body of the routes that create and change a role.
type roleRequest struct {
	Name        *string     `json:"name"`
	Permissions *string     `json:"permissions"`
	Color       *int        `json:"color"`
	Colors      *RoleColors `json:"colors"`
	Hoist       *bool       `json:"hoist"`
	Mentionable *bool       `json:"mentionable"`
}

// apply validates the body and changes a role by it.
func (b *roleRequest) apply(role *Role, may Permission, isAdmin bool) error {
	if b.Name != nil && utf8.RuneCountInString(*b.Name) > maxRoleName {
		return tooLong("name", maxRoleName)
	}
	if b.Permissions != nil {
		bits, err := strconv.ParseUint(*b.Permissions, 10, 64)
		switch {
		case err != nil:
			return invalid("permissions", "NUMBER_TYPE_COERCE", fmt.Sprintf("Value %q is not int.", *b.Permissions))
		case Permission(bits)&^may != 0 && !isAdmin:
			return missingPermissions() // a bot grants only what it has
		}
		role.Permissions = *b.Permissions
	}
	if b.Name != nil && strings.TrimSpace(*b.Name) != "" {
		role.Name = *b.Name
	}
	set(&role.Colors.Primary, b.Color)
	set(&role.Colors, b.Colors)
	role.Color = role.Colors.Primary
	set(&role.Hoist, b.Hoist)
	set(&role.Mentionable, b.Mentionable)
	return nil
}

// set changes a value that is given.
func set[T any](value, given *T) {
	if given != nil {
		*value = *given
	}
}

// managing is the guild of a request that changes roles.
func (s *Server) managing(q *request) (*guild, error) {
	g, err := s.guildOf(q)
	if err == nil && !s.mayIn(g, ManageRoles) {
		return nil, missingPermissions()
	}
	return g, err
}

// managed is the role of a request that changes it: one below the bot's own.
func (s *Server) managed(q *request) (*guild, *Role, error) {
	g, err := s.managing(q)
	if err != nil {
		return nil, nil, err
	}
	role, err := q.role(g)
	if err != nil {
		return nil, nil, err
	}
	own, err := Guild{s: s, ID: g.id}.botRole(g)
	if err != nil || role.ID != g.id && role.Position >= own.Position {
		return nil, nil, missingPermissions()
	}
	return g, role, nil
}

// role is the role of a request.
func (q *request) role(g *guild) (*Role, error) {
	id, err := q.id("role")
	if err != nil {
		return nil, err
	}
	role := g.role(id)
	if role == nil {
		return nil, unknown(10011, "Role")
	}
	return role, nil
}

func (s *Server) getRoles(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	return slices.Clone(g.roles), nil
}

func (s *Server) getRole(q *request) (any, error) {
	g, err := s.guildOf(q)
	if err != nil {
		return nil, err
	}
	role, err := q.role(g)
	if err != nil {
		return nil, err
	}
	return *role, nil
}

func (s *Server) createRole(q *request) (any, error) {
	g, err := s.managing(q)
	if err != nil {
		return nil, err
	}
	var body roleRequest
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if len(g.roles) >= maxRoles {
		return nil, refuse(400, 30005, fmt.Sprintf("Maximum number of guild roles reached (%d)", maxRoles))
	}
	role := Role{Name: "new role", Permissions: everyonePermissions.String(), Position: 1}
	if err := body.apply(&role, g.permissions(), s.mayIn(g, Administrator)); err != nil {
		return nil, err
	}
	for i := range g.roles {
		if other := &g.roles[i]; other.ID != g.id { // the new one is the lowest
			other.Position++
			s.roleChanged(g, other)
		}
	}
	role.ID = s.newID()
	s.addRole(g, role)
	return role, nil
}

func (s *Server) modifyRole(q *request) (any, error) {
	g, role, err := s.managed(q)
	if err != nil {
		return nil, err
	}
	var body roleRequest
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	changed := *role
	if err := body.apply(&changed, g.permissions(), s.mayIn(g, Administrator)); err != nil {
		return nil, err
	}
	*role = changed
	s.roleChanged(g, role)
	return changed, nil
}

func (s *Server) deleteRole(q *request) (any, error) {
	g, role, err := s.managed(q)
	switch {
	case err != nil:
		return nil, err
	case role.ID == g.id || role.Managed:
		return nil, refuse(400, 50028, "Invalid Role")
	}
	s.deleteRoleOf(g, role.ID)
	return nil, nil
}

func (s *Server) addMemberRole(q *request) (any, error) { return nil, s.changeMemberRole(q, true) }

func (s *Server) removeMemberRole(q *request) (any, error) { return nil, s.changeMemberRole(q, false) }

func (s *Server) changeMemberRole(q *request, on bool) error {
	g, role, err := s.managed(q)
	if err != nil {
		return err
	}
	m, err := q.member(g)
	switch {
	case err != nil:
		return err
	case role.ID == g.id || role.Managed:
		return refuse(400, 50028, "Invalid Role")
	}
	s.setRole(g, m, role.ID, on)
	return nil
}
