package routing

import (
	"cmp"
	"fmt"
	"slices"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

// maxShared is how many other routes to a group Connect lists.
const maxShared = 20

// ConnectedError means that a chat has a group already.
type ConnectedError struct {
	ChatJID string
	Folder  string
	Route   msg.Route
}

func (e *ConnectedError) Error() string {
	return fmt.Sprintf("chat %s is connected to the group %s already, by route %d (%.200s)", e.ChatJID, e.Folder,
		e.Route.ID, cmp.Or(e.Route.Match, "everything"))
}

// Connection holds the rows that connect a chat to a group.
type Connection struct {
	Routes []msg.Route // to be added, none if the chat has them
	Before int64       // the id of the row that they come directly before, 0 for the end
	Shared []string    // the matches of other rows that lead to the group, the first 20
}

// Connect returns the routes by which a group answers a chat. They come before the first row that
// takes any sender's messages of the chat now, and after all rows that are more special. If such a
// row leads to a group, it returns a *ConnectedError. The group must be in the table.
func (t *Table) Connect(chatJID string, kind msg.ChatKind, folder string) (Connection, error) {
	wanted := routesOf(chatJID, kind, folder)
	c := Connection{Shared: t.shared(folder, wanted)}
	if t.hasAll(wanted) {
		return c, nil
	}
	first := len(t.routes)
	for _, verb := range []string{msg.VerbMessage, msg.VerbMention, msg.VerbReply} {
		ev := match.EventOf(chatJID, "", "", verb)
		found := t.index.First(&ev)
		if found == nil {
			continue
		}
		at := slices.IndexFunc(t.routes, func(r msg.Route) bool { return r.ID == found.ID })
		called := (verb == msg.VerbMessage) == (kind == msg.ChatDM)
		if called && found.Target.Kind == match.Trigger {
			return Connection{}, &ConnectedError{chatJID, found.Target.Folder, t.routes[at]}
		}
		first = min(first, at)
	}
	if first < len(t.routes) {
		c.Before = t.routes[first].ID
	}
	c.Routes = wanted
	return c, nil
}

// routesOf returns the routes of a chat: a group answers everything in a direct chat, and what
// addresses it elsewhere.
func routesOf(chatJID string, kind msg.ChatKind, folder string) []msg.Route {
	chat := "chat_jid=" + match.Escape(chatJID)
	if kind == msg.ChatDM {
		return []msg.Route{{Match: chat, Target: folder}}
	}
	return []msg.Route{
		{Match: chat + " verb=" + msg.VerbMention, Target: folder},
		{Match: chat + " verb=" + msg.VerbReply, Target: folder},
		{Match: chat, Target: folder + "#observe"},
	}
}

func sameRoute(a, b msg.Route) bool { return a.Match == b.Match && a.Target == b.Target }

func contains(all []msg.Route, r msg.Route) bool {
	return slices.ContainsFunc(all, func(o msg.Route) bool { return sameRoute(o, r) })
}

func (t *Table) hasAll(wanted []msg.Route) bool {
	return !slices.ContainsFunc(wanted, func(w msg.Route) bool { return !contains(t.routes, w) })
}

// shared returns the matches of the valid rows that lead to a folder, without those of a chat.
func (t *Table) shared(folder string, without []msg.Route) []string {
	matches := []string{}
	for _, r := range t.routes {
		target, err := match.ParseTarget(r.Target)
		if err != nil || target.Folder != folder || contains(without, r) || slices.Contains(matches, r.Match) {
			continue
		}
		if _, err := match.ParseMatch(r.Match); err == nil && len(matches) < maxShared {
			matches = append(matches, r.Match)
		}
	}
	return matches
}
