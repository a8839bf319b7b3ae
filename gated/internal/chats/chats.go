// Package chats says which chats belong to a group, as the stored routes have it.
package chats

import (
	"context"
	"sync"

	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
)

// pageRows is how many chats are read at once.
const pageRows = 500

// Chats reads routes, groups and chats. It is safe for concurrent use.
type Chats struct {
	st store.Reader

	mu      sync.Mutex
	version int64 // of routes and groups, 0 for none read
	table   *routecheck.Chats
}

// New makes a Chats that reads from st.
func New(st store.Reader) *Chats { return &Chats{st: st} }

// Leads reports whether messages of a chat can reach a group.
func (c *Chats) Leads(ctx context.Context, jid, folder string) (bool, error) {
	table, err := c.routes(ctx)
	if err != nil {
		return false, err
	}
	if jid, err = c.st.Address(ctx, jid); err != nil {
		return false, err
	}
	chat, err := c.st.Chat(ctx, jid)
	if err != nil {
		return false, err
	}
	if chat == nil {
		chat = &msg.Chat{JID: jid}
	}
	return table.Leads(chat, folder), nil
}

// Of returns the addresses of a group's chats, at most limit, sorted; of all groups for "". Chats between groups are none.
func (c *Chats) Of(ctx context.Context, folder string, limit int) (jids []string, err error) {
	table, err := c.routes(ctx)
	if err != nil {
		return nil, err
	}
	for after := ""; ; {
		page, err := c.st.ChatsPage(ctx, after, pageRows)
		if err != nil || len(page) == 0 {
			return jids, err
		}
		for _, chat := range page {
			after = chat.JID
			if platform, _ := msg.SplitJID(chat.JID); platform == msg.PlatformGroup {
				continue
			}
			if home := table.Home(chat); home == "" || folder != "" && home != folder {
				continue
			}
			if jids = append(jids, chat.JID); len(jids) == limit {
				return jids, nil
			}
		}
	}
}

// routes returns the table, read again if it has changed.
func (c *Chats) routes(ctx context.Context) (*routecheck.Chats, error) {
	version, err := c.st.RoutingVersion(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table != nil && c.version == version {
		return c.table, nil
	}
	routes, err := c.st.Routes(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := c.st.Groups(ctx)
	if err != nil {
		return nil, err
	}
	c.table, c.version = routecheck.NewChats(routes, groups), version
	return c.table, nil
}
