package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/adapter/plaintext"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Approvals is the requests of chats that want to be connected. Texts of requests are those of strangers.
// Times are unix ms.
type Approvals struct {
	Pending  []*factrows.Request // the newest first
	More     int                 // pending requests that are not listed
	Defaults map[string]string   // the folder that each pending one would get, by code, as far as it is known
	Decided  []*factrows.Request
	Groups   []GroupChats // that a chat may be connected to
	Now      int64
}

// requestName is the title of a request's chat, else its address.
func requestName(r *factrows.Request) string { return cmp.Or(Line(r.Title), Line(r.ChatJID)) }

// sampleOf is the beginning of the message that asked.
func sampleOf(r *factrows.Request) string { return Cut(plaintext.Line(r.Sample), maxSample) }

// decider words who decided on a request: an operator, or why none did.
func decider(by string) string {
	switch by {
	case factrows.DecidedByRoutes:
		return "a route that was added"
	case factrows.DecidedByTime:
		return "time: no operator decided"
	case factrows.DecidedByMove:
		return "its move to another address"
	}
	return by
}

// kindWords words the kind of a chat.
func kindWords(kind msg.ChatKind, jid string) string {
	if msg.FamilyOf(jid) == msg.PlatformHook {
		return "webhook"
	}
	return cmp.Or(map[msg.ChatKind]string{
		msg.ChatDM: "direct chat", msg.ChatGroup: "group chat", msg.ChatChannel: "channel", msg.ChatWeb: "web chat",
		msg.ChatInternal: "between groups",
	}[kind], string(kind))
}

// GroupChats is a group and the chats that share its files and sessions.
type GroupChats struct {
	Folder string
	Chats  []string // in words
	More   int      // chats that are not listed
}

// Label names the chats on one line.
func (g GroupChats) Label() string {
	if len(g.Chats) == 0 {
		return "shared with no other chat"
	}
	text := "shared with " + strings.Join(g.Chats, ", ")
	if g.More > 0 {
		text += fmt.Sprintf(" and %d more", g.More)
	}
	return text
}

// Steps lead an operator to the first chat of a platform that is answered.
type Steps struct {
	Daemons   []string   // that should run and do not
	Platforms []Platform // the adapters
	Operators Operators
	Requests  []*factrows.Request // that wait, at most a few
}

// Operators are those of an instance.
type Operators struct {
	Named   []string // by OPERATORS
	Invalid []string // those of them that name no user, with the reason
	Made    []MadeOperator
	Now     int64
}

// Any reports whether there is an operator besides the users of the dashboard.
func (o Operators) Any() bool { return len(o.Named)+len(o.Made) > 0 }

// Shown are all of them, in words.
func (o Operators) Shown() []string {
	all := slices.Clone(o.Named)
	for _, made := range o.Made {
		all = append(all, made.Shown)
	}
	return all
}

// MadeOperator became an operator by a code.
type MadeOperator struct {
	store.MadeOperator
	Shown string
}

// Platform is an adapter. Problem is why it is not connected, "" while it was not started.
type Platform struct {
	Name, Daemon string
	Where        string   // where the token comes from
	OperatorID   string   // how an operator finds their own id there
	Secrets      []string // the variables with its tokens, that without which it cannot start first
	Connected    bool
	Problem      string
}

// Connect says how a platform gets its token.
type Connect struct {
	Platform
	Profiles string // of Compose: its own, and those of the platforms that are connected already
}

// SecretFile is the file with a token, of Compose.
func (c Connect) SecretFile(variable string) string { return "secrets/" + strings.ToLower(variable) }

// ConnectedTo are the platforms that are connected, in words, "" for none.
func (s Steps) ConnectedTo() string {
	var names []string
	for _, p := range s.Platforms {
		if p.Connected {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}
