package console

import (
	"context"
	"sync"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// table is the routes and groups, and the conclusions from them. It is made again when routes or groups have changed:
// open pages share it.
type table struct {
	version  int64
	routes   []msg.Route // in the order in which they are tried
	groups   []msg.Group
	review   func() []review // of the routes, by their places
	homes    *routecheck.Homes
	warnings []routecheck.Warning
	members  func() map[string]groupconfig.Members // by folder
	sharers  map[string][]string                   // by folder: the matches of the routes that lead there
}

type tables struct {
	mu   sync.Mutex
	last *table
}

// table returns the present one.
func (c *site) table(ctx context.Context) (*table, error) {
	version, err := c.Store.RoutingVersion(ctx) // first: rows that are read after it are not older
	if err != nil {
		return nil, err
	}
	c.tables.mu.Lock()
	defer c.tables.mu.Unlock()
	if last := c.tables.last; last != nil && last.version == version {
		return last, nil
	}
	routes, err := c.Store.Routes(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := c.Store.Groups(ctx)
	if err != nil {
		return nil, err
	}
	c.tables.last = &table{
		version: version, routes: routes, groups: groups,
		review: sync.OnceValue(func() []review { return reviewOf(routes, groups) }),
		homes:  routecheck.NewHomes(routes, groups), warnings: routecheck.Warnings(routes, groups),
		members: sync.OnceValue(func() map[string]groupconfig.Members { return routecheck.MembersOf(groups) }),
		sharers: sharers(routes),
	}
	return c.tables.last, nil
}

// sharers are, by folder, the matches of the routes that lead there.
func sharers(routes []msg.Route) map[string][]string {
	all, seen := map[string][]string{}, map[[2]string]bool{}
	for _, r := range routes {
		target, err := match.ParseTarget(r.Target)
		if err != nil || target.Folder == "" {
			continue
		}
		if to := [2]string{target.Folder, r.Match}; !seen[to] {
			seen[to] = true
			all[target.Folder] = append(all[target.Folder], r.Match)
		}
	}
	return all
}

// leads words which messages routes lead to a group, those of the first routes, and counts the other ones.
func (c *site) leads(ctx context.Context, t *table, folder string, most int) (words []string, more int, err error) {
	all := t.sharers[folder]
	words, err = c.matchWords(ctx, all[:min(len(all), most)])
	return words, max(0, len(all)-most), err
}

// titles are those of chats.
func (c *site) titles(ctx context.Context, jids []string) (pages.Titles, error) {
	titles := pages.Titles{}
	err := rows.Titles(ctx, c.Store, jids, func(jid, title string) { titles[jid] = c.Pages.Hide(title) })
	return titles, err
}

// chatsOf are the addresses of the chats of a list.
func chatsOf[T any](list []T, jid func(T) string) []string {
	all := make([]string, len(list))
	for i, each := range list {
		all[i] = jid(each)
	}
	return all
}
