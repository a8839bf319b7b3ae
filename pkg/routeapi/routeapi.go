// Package routeapi has the wire types of POST /v1/resolve, by which gated asks routd where inbound
// rows go: many rows in one call, and for each of them a decision and its reason.
package routeapi

import (
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
)

// Path is the endpoint of routd.
const Path = "/v1/resolve"

const (
	// MaxItems is how many rows one request may ask about.
	MaxItems = 1000
	// MaxField is how long a text of an item may be, in bytes. Platforms' names and ids are below 300.
	MaxField = 4096
)

// Request asks about rows in their order: claims of one count for those after it.
type Request struct {
	Items []Item `json:"items"`
}

// Replay is a question of `routd resolve` about rows that were decided before, in one line of JSON; the answer is a
// Response.
type Replay struct {
	Items []Item `json:"items"`
	// Engaged are the groups that were engaged in the places of items then, by id. In all other places none was.
	Engaged map[int64]string `json:"engaged,omitempty"`
}

// Item is one inbound row. ID and ChatJID suffice, everything else has its default.
type Item struct {
	ID          int64        `json:"id"`           // messages.id, repeated in the answer
	ChatJID     string       `json:"chat_jid"`     // platform:room
	Kind        msg.ChatKind `json:"kind"`         // of the chat; "" is guessed from its address
	Topic       string       `json:"topic"`        // the row's own, before the chat's pinned one
	ThreadID    string       `json:"thread_id"`    // the platform's thread, "" outside one
	Sender      string       `json:"sender"`       // platform:user id
	SenderName  string       `json:"sender_name"`  // display name
	Verb        string       `json:"verb"`         // "" counts as message
	PlatformID  string       `json:"platform_id"`  // the message's native id, "" if it has none
	StickyGroup string       `json:"sticky_group"` // the group the chat is pinned to, "" for none
	ReceivedAt  int64        `json:"received_at"`  // unix milliseconds; decides which engagement counts

	// Folder names the group, for rows whose text does: no other rule applies, the row triggers.
	Folder string `json:"folder,omitempty"`
	// HomeOnly asks for home, thread and surface alone, as commands need them: no rule
	// but builtin:drop applies, nothing is claimed, else the action is none without a reason.
	HomeOnly bool `json:"home_only,omitempty"`
	// Stale marks a row that came too late to be answered: it claims nothing.
	Stale bool `json:"stale,omitempty"`
}

// texts are the item's texts and their names.
func (i *Item) texts() [10]struct{ name, value string } {
	return [...]struct{ name, value string }{
		{"chat_jid", i.ChatJID}, {"kind", string(i.Kind)}, {"topic", i.Topic}, {"thread_id", i.ThreadID},
		{"sender", i.Sender}, {"sender_name", i.SenderName}, {"verb", i.Verb}, {"platform_id", i.PlatformID},
		{"sticky_group", i.StickyGroup}, {"folder", i.Folder},
	}
}

// Size is at least the size of the item's JSON, in bytes: names and numbers take less than 256,
// and JSON writes a byte of a text in up to 6.
func (i *Item) Size() int {
	n := 256
	for _, field := range i.texts() {
		for _, c := range []byte(field.value) {
			if c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c > '~' {
				n += 6
			} else {
				n++
			}
		}
	}
	return n
}

// Check returns the problem of an item whose texts are too long to be matched with every route.
func (i *Item) Check() error {
	for _, field := range i.texts() {
		if n := len(field.value); n > MaxField {
			return fmt.Errorf("%s has %d bytes, at most %d are taken", field.name, n, MaxField)
		}
	}
	return nil
}

// Response has one answer per item, in the order of the items.
type Response struct {
	Items   []Answer `json:"items"`
	Version int64    `json:"version"` // grows with every change of routes or groups, restarts included
}

// Action says how gated handles a row.
type Action string

// The actions.
const (
	Trigger Action = "trigger" // fire a turn of Folder
	Observe Action = "observe" // store it for Folder
	Builtin Action = "builtin" // gated answers or ignores it: builtin:ping or builtin:drop
	Daemon  Action = "daemon"  // pass it to the daemon in Target, daemon:NAME
	None    Action = "none"    // no group takes it; Reason is no_route or no_group
)

// Answer is the decision on one item. Where Error is not empty there is none, and only ID and Error
// are valid.
type Answer struct {
	ID          int64  `json:"id"`           // of the item
	Action      Action `json:"action"`       // how gated handles the row
	Folder      string `json:"folder"`       // of trigger and observe, else ""
	Home        string `json:"home"`         // the chat's group, "" if it has none
	Target      string `json:"target"`       // as a route spells it; "" for none
	RouteID     int64  `json:"route_id"`     // the route that decided, 0 if another rule did
	Engaged     bool   `json:"engaged"`      // Folder answers here because it is engaged
	ThreadID    string `json:"thread_id"`    // where the reply goes
	To          string `json:"to,omitempty"` // the chat where the reply goes, "" for the row's own
	OpensThread bool   `json:"opens_thread"` // ThreadID is a thread that the reply begins
	Surface     string `json:"surface"`      // where the reply will be read, e.g. slack-dm
	Ceiling     int    `json:"ceiling"`      // length hint in characters
	// of the first route that matches, whichever rule decided, merged over the defaults
	Impulse msg.Impulse `json:"impulse"`
	// route, route_observe, sticky_target, address, engaged, builtin_ping, builtin_drop, daemon, no_route or no_group
	Reason msg.Reason `json:"reason"`
	Trace  []string   `json:"trace"` // the steps to the decision, for operators
	Error  string     `json:"error,omitempty"`
}

// MarshalJSON writes a failed item as {id, error}, so that nothing in it is taken for a decision.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Error != "" {
		return json.Marshal(struct {
			ID    int64  `json:"id"`
			Error string `json:"error"`
		}{a.ID, a.Error})
	}
	type decided Answer // without this method
	return json.Marshal(decided(a))
}
