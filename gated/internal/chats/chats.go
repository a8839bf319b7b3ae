// Package chats says which chats belong to a group, and where a group may write. Both follow the stored routes, pins
// and groups as they are now; routd need not run.
package chats

import (
	"cmp"
	"context"
	"sync"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
)

// pageRows is how many chats are read at once.
const pageRows = 500

// Chats keeps the table of routes between questions. It is safe for concurrent use. The zero value is empty. Its
// methods read by r, which may be that of a transaction.
type Chats struct {
	mu      sync.Mutex
	version int64 // of routes and groups, 0 for none read
	table   *routecheck.Chats
}

// Home returns the group that answers a chat now, "" for none: by its pin, its address, or the routes. In a direct
// message the routes are asked about its user. A chat that the routes give to no group as a whole, since they ask for
// certain senders or verbs of any chat, belongs to the group that answered there last, as long as a route still leads
// to it.
func (c *Chats) Home(ctx context.Context, r store.Reader, jid string) (string, error) {
	table, err := c.routes(ctx, r)
	if err != nil {
		return "", err
	}
	if jid, err = r.Address(ctx, jid); err != nil {
		return "", err
	}
	chat, err := r.Chat(ctx, jid)
	if err != nil {
		return "", err
	}
	if chat == nil {
		// A route for all chats of a platform is none for addresses that do not exist.
		last, err := r.LastHome(ctx, jid)
		if err != nil || last == "" && !table.Names(jid) {
			return "", err
		}
		chat = &msg.Chat{JID: jid, Kind: msg.KindOfJID(jid)}
	}
	return home(ctx, r, table, chat)
}

func home(ctx context.Context, r store.Reader, table *routecheck.Chats, chat *msg.Chat) (folder string, err error) {
	user := ""
	if chat.Kind == msg.ChatDM && table.BySender() {
		if _, user, err = r.LastUser(ctx, chat.JID); err != nil {
			return "", err
		}
		user = cmp.Or(user, chat.JID) // the address of the user on Telegram
	}
	if folder = table.Home(chat, user); folder != "" {
		return folder, nil
	}
	last, err := r.LastHome(ctx, chat.JID)
	if err != nil || !table.Leads(chat, last) {
		return "", err
	}
	return last, nil
}

// MayWrite reports whether a group may write into a chat of its own accord, not as an answer: the chat's home is the
// group itself or below it.
func (c *Chats) MayWrite(ctx context.Context, r store.Reader, jid, folder string) (bool, error) {
	home, err := c.Home(ctx, r, jid)
	return msg.Within(home, folder), err
}

// MayRemind reports whether the reminders of a group in a chat still fire. A pin sends users' messages to another group
// for a while and ends no reminder. Nor does a chat that the routes give to no group as a whole, as long as one of them
// leads to the group.
func (c *Chats) MayRemind(ctx context.Context, r store.Reader, jid, folder string) (bool, error) {
	table, err := c.routes(ctx, r)
	if err != nil {
		return false, err
	}
	if jid, err = r.Address(ctx, jid); err != nil {
		return false, err
	}
	chat, err := r.Chat(ctx, jid)
	if err != nil {
		return false, err
	}
	if chat == nil {
		chat = &msg.Chat{JID: jid, Kind: msg.KindOfJID(jid)}
	}
	chat.StickyGroup = ""
	at, err := home(ctx, r, table, chat)
	return msg.Within(at, folder) || at == "" && table.Leads(chat, folder), err
}

// Of returns the addresses of the chats whose home is a group, at most limit, sorted. Internal chats between groups are
// left out.
func (c *Chats) Of(ctx context.Context, r store.Reader, folder string, limit int) (jids []string, err error) {
	table, err := c.routes(ctx, r)
	if err != nil {
		return nil, err
	}
	for after := ""; ; {
		page, err := rows.ChatsPage(ctx, r, after, pageRows)
		if err != nil || len(page) == 0 {
			return jids, err
		}
		for _, chat := range page {
			after = chat.JID
			if platform, _ := msg.SplitJID(chat.JID); platform == msg.PlatformGroup || !table.Leads(chat, folder) {
				continue
			}
			at, err := home(ctx, r, table, chat)
			if err != nil {
				return nil, err
			}
			if at != folder {
				continue
			}
			if jids = append(jids, chat.JID); len(jids) == limit {
				return jids, nil
			}
		}
	}
}

// routes returns the table, read again if it has changed.
func (c *Chats) routes(ctx context.Context, r store.Reader) (*routecheck.Chats, error) {
	version, err := r.RoutingVersion(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table != nil && c.version == version {
		return c.table, nil
	}
	routes, err := r.Routes(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := r.Groups(ctx)
	if err != nil {
		return nil, err
	}
	c.table, c.version = routecheck.NewChats(routes, groups), version
	return c.table, nil
}
