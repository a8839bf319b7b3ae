package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
	"arizuko/routd/internal/routing"
	"arizuko/routd/internal/rows"
)

// maxListed is how many problems of a table the error names.
const maxListed = 10

// replaceRoutes replaces the whole table, unless it was changed since the editor saw it.
func (a *API) replaceRoutes(r *http.Request) (*httpx.Answer, error) {
	table, err := httpx.Decode[routeapi.Table](r)
	if err != nil {
		return nil, err
	}
	switch n := len(table.Routes); {
	case table.Routes == nil:
		return nil, apierr.New(apierr.BadRequest, "routes is missing: an empty list deletes all routes")
	case n > routeapi.MaxRoutes:
		return nil, apierr.New(apierr.BadRequest, "%d routes, at most %d are replaced at once", n, routeapi.MaxRoutes)
	}
	for i := range table.Routes {
		normalize(&table.Routes[i])
	}
	var done routeapi.Replaced
	err = a.write(r.Context(), func(tx *store.Tx) (err error) {
		c := replacement{audit: a.audit(r)}
		if err := c.read(r.Context(), tx, &table); err != nil {
			return err
		}
		if err := c.store(tx, table.Routes); err != nil {
			return err
		}
		done = c.done
		done.Routes, err = tx.Routes(r.Context())
		done.Digest = routeapi.Digest(done.Routes)
		return err
	})
	if err != nil {
		return nil, err
	}
	if done.Routes == nil {
		done.Routes = []msg.Route{} // [] rather than null
	}
	return &httpx.Answer{Status: http.StatusOK, Body: done}, nil
}

// replacement changes the stored rows one by one into those of a table.
type replacement struct {
	audit
	before map[int64]*msg.Route // the stored rows that the table does not have, once store has seen all of its rows
	order  []int64              // of the stored rows
	moved  []int64              // rows of which only the order number was changed
	done   routeapi.Replaced
}

// read checks a table against the stored one, in the transaction, so that nothing changes in between.
func (c *replacement) read(ctx context.Context, tx *store.Tx, table *routeapi.Table) error {
	stored, err := tx.Routes(ctx)
	if err != nil {
		return err
	}
	groups, err := tx.Groups(ctx)
	if err != nil {
		return err
	}
	if routeapi.Digest(stored) != table.Digest {
		return apierr.New(apierr.Conflict,
			"the routes were changed since you loaded them: load them again, or compare and then save")
	}
	c.before = make(map[int64]*msg.Route, len(stored))
	for i := range stored {
		c.before[stored[i].ID] = &stored[i]
		c.order = append(c.order, stored[i].ID)
	}
	found := routing.Problems(table.Routes, routecheck.Registered(groups))
	for i, r := range table.Routes {
		if r.ID != 0 && c.before[r.ID] == nil {
			found = append(found,
				routeapi.Problem{Row: i, Text: fmt.Sprintf("there is no route %d: leave out the id to add one", r.ID)})
		}
	}
	slices.SortStableFunc(found, func(a, b routeapi.Problem) int { return cmp.Compare(a.Row, b.Row) })
	return refuse(found)
}

func (c *replacement) store(tx *store.Tx, routes []msg.Route) error {
	for i := range routes {
		r := &routes[i]
		before := c.before[r.ID]
		delete(c.before, r.ID)
		if before != nil && sameRoute(before, r) {
			continue
		}
		if err := c.put(tx, before, r); err != nil {
			return err
		}
	}
	for _, id := range c.order {
		gone := c.before[id]
		if gone == nil {
			continue
		}
		if _, err := rows.DeleteRoute(tx, id); err != nil {
			return err
		}
		c.done.Deleted++
		if err := c.route(tx, gone, nil); err != nil {
			return err
		}
	}
	if len(c.moved) > 0 {
		return c.audit.put(tx, "reorder routes", "%d: %v", len(c.moved), c.moved)
	}
	return nil
}

func (c *replacement) put(tx *store.Tx, before, after *msg.Route) (err error) {
	if before == nil {
		c.done.Added++
		err = tx.PutRoute(after)
	} else {
		c.done.Changed++
		_, err = rows.UpdateRoute(tx, after)
	}
	if err != nil {
		return err
	}
	if before != nil {
		moved := *before
		if moved.Seq = after.Seq; sameRoute(&moved, after) {
			c.moved = append(c.moved, after.ID)
			return nil
		}
	}
	return c.route(tx, before, after)
}

// refuse returns an error that names the problems, nil for none.
func refuse(problems []routeapi.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	var lines []string
	for _, p := range problems[:min(len(problems), maxListed)] {
		lines = append(lines, fmt.Sprintf("routes[%d]: %s", p.Row, p.Text))
	}
	if more := len(problems) - maxListed; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more problems", more))
	}
	return apierr.New(apierr.BadRequest, "%s", strings.Join(lines, "; "))
}
