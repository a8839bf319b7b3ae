package groupconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Everyone is the value of access, and of pin, that lets in each sender of the group's chats.
const Everyone = "everyone"

// Access is the ids of the senders who may use a group. nil, "everyone" in JSON, is each sender of
// its chats; an empty list is operators alone.
type Access []string

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
	Access   Access
	Rate     int  // turns per sender and hour, 0 for no limit
	OwnGroup bool // they may not address other groups by @name
	NoPins   bool // they may not pin a chat
}

// Members returns c's rights of members, with the defaults.
func (c Config) Members() Members {
	m := Members{
		Access: c.Access, Rate: DefaultRate,
		OwnGroup: c.Reach != "" && c.Reach != ReachWorld,
		NoPins:   c.Pin != "" && c.Pin != PinEveryone,
	}
	if c.Rate != nil {
		m.Rate = *c.Rate
	}
	return m
}

// ReadMembers reads a configuration's rights of members. Of an invalid one it returns the error
// of Parse, and the members as the valid keys say. An invalid key among access, reach and pin gives
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
	if wrong("access") || slices.Contains(problems, notAnObject) {
		m.Access = Access{}
	}
	return m, problems
}

// Admits reports whether a sender may use the group.
func (m Members) Admits(sender string, operator bool) bool {
	return operator || m.Access == nil || slices.Contains(m.Access, sender)
}

// MarshalJSON writes nil as "everyone".
func (a Access) MarshalJSON() ([]byte, error) {
	if a == nil {
		return json.Marshal(Everyone)
	}
	return json.Marshal([]string(a))
}

// String is the JSON of the setting.
func (a Access) String() string {
	text, _ := a.MarshalJSON() // a list of texts always marshals
	return string(text)
}

// UnmarshalJSON reads the output of MarshalJSON. It checks no sender: Parse does.
func (a *Access) UnmarshalJSON(raw []byte) error {
	var word string
	if json.Unmarshal(raw, &word) == nil && word == Everyone {
		*a = nil
		return nil
	}
	var senders []string
	err := json.Unmarshal(raw, &senders)
	*a = append(Access{}, senders...) // any other value admits operators alone
	return err
}

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
