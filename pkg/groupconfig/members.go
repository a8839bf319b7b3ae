package groupconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Everyone is the value of a role, and of pin, that lets in each sender of the group's chats.
const Everyone = "everyone"

// Reach is which groups members may address by @name from the chats of a group.
type Reach string

// The values of Reach.
const (
	ReachWorld Reach = "world" // the groups of the group's world; the default
	ReachNone  Reach = "none"  // no other group
)

// Pin is who may pin the chats of a group to a group or a topic.
type Pin string

// The values of Pin.
const (
	PinEveryone  Pin = Everyone // the default
	PinOperators Pin = "operators"
)

// DefaultRate is the turns per sender and hour of a group that sets no rate: one a minute, more than
// a user writes who reads the answers.
const DefaultRate = 60

// Members are the rights of a group's members, the senders of its chats. The zero value is that
// of a group which admits each sender, without a limit. Operators may do everything.
type Members struct {
	Roles    Roles
	Admin    string // one who administers the chat, of whom they are; "" for others
	Rate     int    // turns per sender and hour, 0 for no limit
	OwnGroup bool   // they may not address other groups by @name
	NoPins   bool   // they may not pin a chat
	// Hooks are the ids of the group's hooks, whose deliveries it always takes.
	Hooks []string
}

// Members returns c's rights of members, with the defaults.
func (c Config) Members() Members {
	m := Members{
		Roles: c.Roles, Rate: DefaultRate,
		OwnGroup: c.Reach != "" && c.Reach != ReachWorld,
		NoPins:   c.Pin != "" && c.Pin != PinEveryone,
	}
	for _, h := range c.Hooks {
		m.Hooks = append(m.Hooks, h.ID)
	}
	if c.Rate != nil {
		m.Rate = *c.Rate
	}
	return m
}

// ReadMembers reads a configuration's rights of members. Of an invalid one it returns the error
// of Parse, and the members as the valid keys say. An invalid key among roles, reach and pin gives
// the least: a mistake admits operators alone.
func ReadMembers(raw json.RawMessage) (Members, error) {
	c, problems := parse(raw)
	m := c.Members()
	if len(problems) == 0 {
		return m, nil
	}
	wrong := func(path string) bool {
		return slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, path+": ") })
	}
	if wrong("rate") {
		m.Rate = DefaultRate
	}
	m.OwnGroup = m.OwnGroup || wrong("reach")
	m.NoPins = m.NoPins || wrong("pin")
	all := slices.Contains(problems, notAnObject)
	least := func(role *Role, paths ...string) {
		if all || wrong("roles") || slices.ContainsFunc(paths, wrong) {
			*role = Role{}
		}
	}
	least(&m.Roles.Ask, "roles.ask", "access")
	least(&m.Roles.Approve, "roles.approve", "approvers")
	least(&m.Roles.Operate, "roles.operate")
	return m, problems
}

// Admits reports whether a sender may use the group.
func (m Members) Admits(sender string, operator bool) bool {
	return operator || m.Roles.Ask == nil || m.has(m.Roles.Ask, sender) || m.ownHook(sender)
}

// ownHook reports whether a sender is a hook of the group: hook:folder.id.
func (m Members) ownHook(sender string) bool {
	return strings.HasPrefix(sender, "hook:") && slices.Contains(m.Hooks, sender[strings.LastIndexByte(sender, '.')+1:])
}

// Operates reports whether a sender who is no operator operates the group.
func (m Members) Operates(sender string) bool { return m.has(m.Roles.Operate, sender) }

func (m Members) has(role Role, sender string) bool {
	return role.Everyone() || slices.Contains(role.Senders(), sender) ||
		m.Admin != "" && m.Admin == sender && role.Admins()
}

// NameAdmins reports whether a role names the users who administer a chat.
func (m Members) NameAdmins() bool {
	return m.Roles.Ask.Admins() || m.Roles.Approve.Admins() || m.Roles.Operate.Admins()
}

// Open reports whether the group admits each sender.
func (m Members) Open() bool { return m.Roles.Ask == nil || m.Roles.Ask.Everyone() }

// checkSender returns an error for a text that can't be a sender's id: names, which their owners choose, and
// patterns, since ids are compared whole.
func checkSender(sender string) error {
	platform, user, _ := strings.Cut(sender, ":")
	if platform == "" || user == "" || len(sender) > maxSender ||
		strings.ContainsFunc(sender, unicode.IsSpace) || strings.ContainsFunc(sender, unicode.IsControl) {
		return fmt.Errorf("%.80q is no sender id: want platform:user, as in telegram:42", sender)
	}
	if strings.ContainsAny(sender, "*?[") {
		return fmt.Errorf("%.80q is a pattern: name each sender", sender)
	}
	return nil
}
