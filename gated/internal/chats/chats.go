// Package chats says which chats belong to a group, and where a group may write. Both follow the stored routes, pins
// and groups as they are now; routd need not run.
package chats

import (
	"context"
	"sync"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
)

// pageRows is how many chats are read at once.
const pageRows = 500

// Chats keeps the homes by the routes between questions. It is safe for concurrent use. The zero value is empty. Its
// methods read by r, which may be that of a transaction.
type Chats struct {
	mu      sync.Mutex
	version int64 // of routes and groups, 0 for none read
	homes   *routecheck.Homes
}

// Home returns the group that answers a chat now, "" for none: see routecheck.Homes.
func (c *Chats) Home(ctx context.Context, r store.Reader, jid string) (string, error) {
	homes, chat, stored, err := c.read(ctx, r, jid)
	if err != nil {
		return "", err
	}
	if !stored {
		// A route for all chats of a platform is none for addresses that do not exist.
		last, err := r.LastHome(ctx, chat.JID)
		if err != nil || last == "" && !homes.Names(chat.JID) {
			return "", err
		}
	}
	return homes.Of(ctx, r, chat)
}

// read returns the homes and a chat by its present address. One that is not stored is as its address tells.
func (c *Chats) read(ctx context.Context, r store.Reader, jid string) (homes *routecheck.Homes, chat *msg.Chat,
	stored bool, err error) {
	if homes, err = c.table(ctx, r); err != nil {
		return nil, nil, false, err
	}
	if jid, err = r.Address(ctx, jid); err != nil {
		return nil, nil, false, err
	}
	if chat, err = r.Chat(ctx, jid); err != nil || chat != nil {
		return homes, chat, true, err
	}
	return homes, &msg.Chat{JID: jid, Kind: msg.KindOfJID(jid)}, false, nil
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
	homes, chat, _, err := c.read(ctx, r, jid)
	if err != nil {
		return false, err
	}
	chat.StickyGroup = ""
	at, err := homes.Of(ctx, r, chat)
	return msg.Within(at, folder) || at == "" && homes.Leads(chat, folder), err
}

// Of returns the addresses of the chats whose home is a group, at most limit, sorted. Internal chats between groups are
// left out.
func (c *Chats) Of(ctx context.Context, r store.Reader, folder string, limit int) (jids []string, err error) {
	homes, err := c.table(ctx, r)
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
			if msg.NoUsers(chat.JID) || !homes.Leads(chat, folder) {
				continue
			}
			at, err := homes.Of(ctx, r, chat)
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

// table returns the homes by the present routes and groups.
func (c *Chats) table(ctx context.Context, r store.Reader) (*routecheck.Homes, error) {
	version, err := r.RoutingVersion(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.homes != nil && c.version == version {
		return c.homes, nil
	}
	routes, err := r.Routes(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := r.Groups(ctx)
	if err != nil {
		return nil, err
	}
	c.homes, c.version = routecheck.NewHomes(routes, groups), version
	return c.homes, nil
}
