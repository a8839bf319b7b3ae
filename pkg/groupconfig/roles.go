package groupconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// Operators is the value of a role that operators alone have.
	Operators = "operators"
	// PlatformAdmins stands for the users who administer a chat on its platform.
	PlatformAdmins = "platform admins"
	// maxListed is how many users of a role are named in a chat.
	maxListed = 10
)

// Roles are who may do what in a group's chats, besides operators, who may do everything.
type Roles struct {
	Ask     Role `json:"ask,omitzero"`     // write to the agent; not set, everyone
	Approve Role `json:"approve,omitzero"` // answer its permission requests; not set, in a direct message its user
	Operate Role `json:"operate,omitzero"` // stop the turns of others, choose agent and model, raise budgets
}

// Role is who has a role besides operators. nil means not set. An empty one, "operators" in JSON, is operators alone,
// and one entry [Everyone], a word in JSON as well, is each user of the group's chats.
type Role []Grant

// Grant is an entry of a role: in JSON the id of a sender or [PlatformAdmins], or an object for one whose role is
// limited. Without Hosts and Tools it is not. Limited, it covers permission requests about one of them alone.
type Grant struct {
	Who   string   `json:"who"`
	Hosts []string `json:"hosts,omitzero"` // to which an agent sends requests: "api.github.com" or "*.github.com"
	Tools []string `json:"tools,omitzero"` // by their names as the agent says them
}

// Subject is what a permission request is about: the host that a request goes to, in lower case and without a port, or
// the name of a tool. Both are "" if that is not known.
type Subject struct{ Host, Tool string }

// Everyone reports whether each user of the group's chats has the role.
func (r Role) Everyone() bool { return len(r) == 1 && r[0].Who == Everyone }

// Senders are the ids of those whom the role lists.
func (r Role) Senders() (ids []string) {
	if r.Everyone() {
		return nil
	}
	for _, g := range r {
		ids = append(ids, g.Who)
	}
	return ids
}

// Admins reports whether the users who administer a chat have the role there.
func (r Role) Admins() bool { return slices.Contains(r.Senders(), PlatformAdmins) }

// For returns the role without those who may not answer a permission request.
func (r Role) For(s Subject) Role {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(append(Role{}, r...), func(g Grant) bool { return !g.covers(s) })
}

func (g Grant) limited() bool { return g.Hosts != nil || g.Tools != nil }

func (g Grant) covers(s Subject) bool {
	matches := func(pattern string) bool {
		below, wild := strings.CutPrefix(pattern, "*.")
		return pattern == s.Host || wild && strings.HasSuffix(s.Host, "."+below)
	}
	return !g.limited() || s.Host != "" && slices.ContainsFunc(g.Hosts, matches) ||
		s.Tool != "" && slices.Contains(g.Tools, s.Tool)
}

// Listed names those whom the role lists, for users: "Ann, telegram:42; telegram:43". name returns a sender's name, ""
// if it is not known; nil knows none.
func (r Role) Listed(name func(sender string) string) string {
	var all []string
	for i, g := range r {
		if i == maxListed {
			all = append(all, fmt.Sprintf("and %d more", len(r)-i))
			break
		}
		text := g.Who
		if name != nil && g.Who != PlatformAdmins && name(g.Who) != "" {
			text = name(g.Who) + ", " + text
		}
		if g.limited() {
			text += " (" + strings.Join(slices.Concat(g.Hosts, g.Tools), ", ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// Words say who has the role, for users: "everyone", "operators", or "operators and Ann, telegram:42". With a title, as
// in "the approvers of this group", that stands before those who are listed. name is that of Listed.
func (r Role) Words(title string, name func(sender string) string) string {
	switch {
	case r.Everyone():
		return Everyone
	case len(r) == 0:
		return Operators
	case title == "":
		return Operators + " and " + r.Listed(name)
	}
	return fmt.Sprintf("%s and %s (%s)", Operators, title, r.Listed(name))
}

// RoleLine is a role in words for users. If Role is not set, Who words the default.
type RoleLine struct {
	Name, Meaning, Who string
	Role               Role
}

// Lines are all roles for users. name is that of [Role.Listed].
func (r Roles) Lines(name func(sender string) string) []RoleLine {
	lines := []RoleLine{
		{"ask", "write to the agent", Everyone, r.Ask},
		{"approve", "answer its permission requests", "operators, and in a direct message its user", r.Approve},
		{"operate", "stop what others asked for, choose agent and model, raise budgets",
			"operators; until it is set, everyone may stop", r.Operate},
	}
	for i, l := range lines {
		if l.Role != nil {
			lines[i].Who = l.Role.Words("", name)
		}
	}
	return lines
}

// MarshalJSON writes the words "operators" and "everyone", or the list.
func (r Role) MarshalJSON() ([]byte, error) {
	if len(r) == 0 || r.Everyone() {
		return json.Marshal(r.Words("", nil))
	}
	return json.Marshal([]Grant(r))
}

// UnmarshalJSON reads the output of MarshalJSON. It checks no sender: Parse does. Anything else is an error, and
// operators alone.
func (r *Role) UnmarshalJSON(raw []byte) error {
	*r = Role{}
	var word string
	var grants []Grant
	switch err := json.Unmarshal(raw, &grants); {
	case json.Unmarshal(raw, &word) == nil && (word == Everyone || word == PlatformAdmins):
		*r = Role{{Who: word}}
		return nil
	case word == Operators:
		return nil
	case err != nil:
		return err
	case slices.ContainsFunc(grants, func(g Grant) bool { return g.Who == Everyone }):
		return errors.New("everyone is a word, not one of a list")
	}
	*r = append(*r, grants...)
	return nil
}

// MarshalJSON writes the id of a sender whose role is not limited.
func (g Grant) MarshalJSON() ([]byte, error) {
	type object Grant
	if !g.limited() {
		return json.Marshal(g.Who)
	}
	return json.Marshal(object(g))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (g *Grant) UnmarshalJSON(raw []byte) error {
	type object Grant
	if json.Unmarshal(raw, &g.Who) == nil {
		return nil
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	return strict.Decode((*object)(g))
}

// role finds the problems with a role.
func (r *reader) role(path string, role Role) {
	switch {
	case !r.ok(path, `"everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`),
		role.Everyone():
		return
	case len(role) > maxSenders:
		r.problem(path, "must have at most %d entries", maxSenders)
		return
	}
	for _, g := range role {
		if err := checkSender(g.Who); err != nil && g.Who != PlatformAdmins {
			r.problem(path, "%v", err)
		}
		if !g.limited() {
			continue
		}
		if path != "roles.approve" {
			r.problem(path, "%s: only the role approve can be limited to hosts or tools", g.Who)
		}
		if len(g.Hosts)+len(g.Tools) == 0 || slices.Contains(g.Tools, "") || slices.ContainsFunc(g.Hosts, notHost) {
			r.problem(path, `%s: want hosts or tools, as in "hosts": ["api.github.com"], "tools": ["Bash"]`, g.Who)
		}
	}
}

// notHost reports whether a text can be no host, in lower case and without a port, and no pattern of hosts.
func notHost(text string) bool {
	return strings.Trim(strings.TrimPrefix(text, "*."), "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" ||
		strings.Trim(text, "*.") == ""
}
