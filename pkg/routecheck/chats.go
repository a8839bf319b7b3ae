package routecheck

import (
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

// Chats says to which groups chats belong, by routes, pins and addresses. Engagement does not count.
type Chats struct {
	routes     []match.Route
	registered map[string]bool
}

// NewChats takes the routing table and the registered groups.
func NewChats(routes []msg.Route, groups []msg.Group) *Chats {
	c := &Chats{routes: parse(routes), registered: make(map[string]bool, len(groups))}
	for _, g := range groups {
		c.registered[g.Folder] = msg.ValidFolder(g.Folder) == nil
	}
	return c
}

// Home is the group that gets a plain message of a sender without routes of its own, "" for none.
func (c *Chats) Home(chat *msg.Chat) string {
	if folder, fixed := c.fixed(chat); fixed {
		return folder
	}
	plain := match.EventOf(chat.JID, "", "", msg.VerbMessage)
	for i := range c.routes {
		if expr := c.routes[i].Expr(); expr.Matches(&plain) {
			return c.known(c.routes[i].Target.Folder)
		}
	}
	return ""
}

// Leads reports whether any message of a chat can reach a group, to be answered or observed.
func (c *Chats) Leads(chat *msg.Chat, folder string) bool {
	if !c.registered[folder] {
		return false
	}
	if at, fixed := c.fixed(chat); fixed && at == folder {
		return true
	}
	if msg.AddressedFolder(chat.JID) != "" {
		return false
	}
	// No sender and no verb: only a route that asks for neither matches, and no later one counts.
	anything := match.EventOf(chat.JID, "", "", "\x00")
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

// fixed is the group that a chat's pin or address names, whatever the routes say.
func (c *Chats) fixed(chat *msg.Chat) (folder string, fixed bool) {
	if c.registered[chat.StickyGroup] {
		return chat.StickyGroup, true
	}
	if folder := msg.AddressedFolder(chat.JID); folder != "" {
		return c.known(folder), true
	}
	return "", false
}

func (c *Chats) known(folder string) string {
	if c.registered[folder] {
		return folder
	}
	return ""
}
