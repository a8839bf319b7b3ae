package routecheck

import (
	"cmp"
	"context"
	"slices"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

// Homes says to which groups chats belong, by routes, pins and addresses, and where these say nothing by the answers so
// far. Engagement does not count. gated and dashd both ask it; routd, which adds engagement, decides each message.
type Homes struct {
	routes     []match.Route // of registered groups and of no group, in the order in which they are tried
	registered func(folder string) bool
	bySender   bool // a route asks who wrote a message
}

// NewHomes takes the routing table and the registered groups.
func NewHomes(routes []msg.Route, groups []msg.Group) *Homes {
	h := &Homes{registered: Registered(groups)}
	for _, r := range parse(routes) {
		if folder := r.Target.Folder; folder == "" || h.registered(folder) {
			h.routes = append(h.routes, r)
			h.bySender = h.bySender || r.Expr().OfSenders()
		}
	}
	return h
}

// History reads the rows of a chat.
type History interface {
	LastUser(ctx context.Context, jid string) (row int64, user string, err error) // "" for none
	LastHome(ctx context.Context, jid string) (folder string, err error)          // that answered last, "" for none
}

// Of returns the group that answers a chat now, "" for none: by its pin, its address, or the routes. In a direct
// message the routes are asked about its user. A chat that the routes give to no group as a whole, since they ask for
// certain senders or verbs of any chat, belongs to the group that answered there last, as long as a route still leads
// to it.
func (h *Homes) Of(ctx context.Context, rows History, chat *msg.Chat) (folder string, err error) {
	user := ""
	if chat.Kind == msg.ChatDM && h.bySender {
		if _, user, err = rows.LastUser(ctx, chat.JID); err != nil {
			return "", err
		}
		user = cmp.Or(user, chat.JID) // the address of the user on Telegram
	}
	if folder = h.home(chat, user); folder != "" {
		return folder, nil
	}
	last, err := rows.LastHome(ctx, chat.JID)
	if err != nil || !h.Leads(chat, last) {
		return "", err
	}
	return last, nil
}

// home is the group of a chat's pin or its address, else the one that gets a plain message of a user; user is "" for
// any without routes of their own. Else it is the first group to which a route leads that names the chat, for whatever
// messages. A route for some senders or verbs of any chat makes none its home.
func (h *Homes) home(chat *msg.Chat, user string) string {
	if folder, fixed := h.fixed(chat); fixed {
		return folder
	}
	named := ""
	plain, anything := match.EventOf(chat.JID, user, "", msg.VerbMessage), someMessage(chat.JID)
	for i := range h.routes {
		expr, folder := h.routes[i].Expr(), h.routes[i].Target.Folder
		if expr.Matches(&plain) {
			return cmp.Or(folder, named)
		}
		if named == "" && expr.Reaches(&anything) && names(expr, chat.JID) {
			named = folder
		}
	}
	return named
}

// Answering returns the group that answers what a sender writes in a chat, "" for none: that of its pin or its address,
// the group that is engaged there, or that of the first route. Where no route takes a plain message, as in a chat that
// only has a route for mentions, it is the first group that any text reaches. In a direct message only plain messages
// count.
func (h *Homes) Answering(chat *msg.Chat, engaged, sender, name string) string {
	folder, fixed := h.fixed(chat)
	if fixed {
		return folder
	}
	if h.registered(engaged) {
		return engaged
	}
	routes := h.routes
	for _, verb := range match.WrittenVerbs() {
		ev := match.EventOf(chat.JID, sender, name, verb)
		at := slices.IndexFunc(routes, func(r match.Route) bool { return r.Expr().Matches(&ev) })
		plain := verb == msg.VerbMessage // which is the first
		if at >= 0 && (plain || routes[at].Target.Folder != "") {
			folder, routes = routes[at].Target.Folder, routes[:at]
		}
		if plain && (at >= 0 || cmp.Or(chat.Kind, msg.KindOfJID(chat.JID)) == msg.ChatDM) {
			break
		}
	}
	return folder
}

// Names reports whether an address or a route names a chat, so that it can be meant before its first message.
func (h *Homes) Names(jid string) bool {
	anything := someMessage(jid)
	return h.registered(msg.AddressedFolder(jid)) || slices.ContainsFunc(h.routes, func(r match.Route) bool {
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
func (h *Homes) Leads(chat *msg.Chat, folder string) bool {
	if !h.registered(folder) {
		return false
	}
	if at, fixed := h.fixed(chat); fixed {
		return at == folder
	}
	anything := someMessage(chat.JID)
	for i := range h.routes {
		expr := h.routes[i].Expr()
		if h.routes[i].Target.Folder == folder && expr.Reaches(&anything) {
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
func (h *Homes) fixed(chat *msg.Chat) (folder string, fixed bool) {
	if h.registered(chat.StickyGroup) {
		return chat.StickyGroup, true
	}
	if folder := msg.AddressedFolder(chat.JID); folder != "" {
		if !h.registered(folder) {
			folder = ""
		}
		return folder, true
	}
	return "", false
}
