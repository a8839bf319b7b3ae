package routecheck

import (
	"cmp"
	"slices"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

// Chats says to which groups chats belong, by routes, pins and addresses. Engagement does not count.
type Chats struct {
	routes     []match.Route // of registered groups and of no group, in the order in which they are tried
	registered func(folder string) bool
	bySender   bool
}

// NewChats takes the routing table and the registered groups.
func NewChats(routes []msg.Route, groups []msg.Group) *Chats {
	c := &Chats{registered: Registered(groups)}
	for _, r := range parse(routes) {
		if folder := r.Target.Folder; folder == "" || c.registered(folder) {
			c.routes = append(c.routes, r)
			c.bySender = c.bySender || r.Expr().OfSenders()
		}
	}
	return c
}

// BySender reports whether a route asks who wrote a message.
func (c *Chats) BySender() bool { return c.bySender }

// Home is the group that answers a chat, "" for none: that of its pin or its address, else the one that gets a plain
// message of a user; user is "" for any without routes of their own. Else it is the first group to which a route
// leads that names the chat, for whatever messages. A route for some senders or verbs of any chat makes none its home.
func (c *Chats) Home(chat *msg.Chat, user string) string {
	if folder, fixed := c.fixed(chat); fixed {
		return folder
	}
	named := ""
	plain, anything := match.EventOf(chat.JID, user, "", msg.VerbMessage), someMessage(chat.JID)
	for i := range c.routes {
		expr, folder := c.routes[i].Expr(), c.routes[i].Target.Folder
		if expr.Matches(&plain) {
			return cmp.Or(folder, named)
		}
		if named == "" && expr.Reaches(&anything) && names(expr, chat.JID) {
			named = folder
		}
	}
	return named
}

// Names reports whether an address or a route names a chat, so that it can be meant before its first message.
func (c *Chats) Names(jid string) bool {
	anything := someMessage(jid)
	return c.registered(msg.AddressedFolder(jid)) || slices.ContainsFunc(c.routes, func(r match.Route) bool {
		expr := r.Expr()
		return expr.Reaches(&anything) && names(expr, jid)
	})
}

// names reports whether a route asks for this very chat.
func names(expr match.Expr, jid string) bool {
	_, room := msg.SplitJID(jid)
	conditions := expr.Conditions()
	return slices.Contains(conditions, "chat_jid="+jid) || slices.Contains(conditions, "room="+room)
}

// Leads reports whether any message of a chat can reach a group, to be answered or observed.
func (c *Chats) Leads(chat *msg.Chat, folder string) bool {
	if !c.registered(folder) {
		return false
	}
	if at, fixed := c.fixed(chat); fixed {
		return at == folder
	}
	anything := someMessage(chat.JID)
	for i := range c.routes {
		expr := c.routes[i].Expr()
		if c.routes[i].Target.Folder == folder && expr.Reaches(&anything) {
			return true
		}
		if expr.Matches(&anything) {
			return false
		}
	}
	return false
}

// someMessage has no sender and no verb: only a route that asks for neither matches it, and no later one counts.
func someMessage(jid string) match.Event { return match.EventOf(jid, "", "", "\x00") }

// fixed is the group that a chat's pin or address names, whatever the routes say.
func (c *Chats) fixed(chat *msg.Chat) (folder string, fixed bool) {
	if c.registered(chat.StickyGroup) {
		return chat.StickyGroup, true
	}
	if folder := msg.AddressedFolder(chat.JID); folder != "" {
		if !c.registered(folder) {
			folder = ""
		}
		return folder, true
	}
	return "", false
}
