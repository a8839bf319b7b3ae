// Package authority says who may do what, and on whose behalf. It is pure: rows of users and agents, tools and
// reminders ask it before they write.
package authority

import (
	"slices"
	"time"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
)

// Origin is for whom something is done: the sender who wrote a message or, of what an agent does, the one whose request
// it works on. Authority travels with it, whatever lies between.
type Origin struct {
	Sender   string
	Operator bool
}

// OriginOf is the origin of a row.
func OriginOf(m *msg.Message, operators map[string]bool) Origin {
	if m.OnBehalfOf == "" {
		return Origin{m.Sender, msg.IsOperator(operators, m.ChatJID, m.Sender)}
	}
	return Origin{m.OnBehalfOf, operators[m.OnBehalfOf] || m.OnBehalfOf == msg.WebOperator}
}

// RateTime is the time in which turns are counted against a group's rate, in ms.
const RateTime = int64(time.Hour / time.Millisecond)

// Act is what an origin asks for.
type Act uint8

// The acts.
const (
	Use Act = iota // that groups work for it
	Pin            // that a chat of the first group is pinned; to the second, if there is one
)

// May decides whether an origin may act on groups: "" if so, else the reason of the refusal. It is the one place for
// that: rows of users and agents ask it, and so do the tools, before they write a row. A group that is nil has no
// rules.
func (o Origin) May(act Act, groups ...*groupconfig.Members) msg.Reason {
	if slices.ContainsFunc(groups, func(g *groupconfig.Members) bool {
		return g != nil &&
			!g.Admits(o.Sender, o.Operator)
	}) {
		return msg.ReasonNoAccess
	}
	if act == Pin && !o.Operator && len(groups) > 0 && groups[0] != nil && groups[0].NoPins {
		return msg.ReasonPinDenied
	}
	return ""
}

// Pays reports whether turns of a group that an origin causes count against a rate.
func (o Origin) Pays(g *groupconfig.Members) bool {
	return g != nil && g.Rate > 0 && !o.Operator && o.May(Use, g) == ""
}

// PinsAs reports whether a text pins a chat as it stands, and whether an agent may write it there for an origin: in the
// chat in which the origin wrote by that chat's rules, elsewhere for operators alone.
func (o Origin) PinsAs(text string, home *groupconfig.Members, elsewhere bool) (pins, may bool) {
	_, pins = layers.ParseSticky(text)
	return pins, o.May(Pin, home) == "" && (o.Operator || !elsewhere)
}
