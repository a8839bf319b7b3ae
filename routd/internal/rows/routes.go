package rows

import (
	"context"
	"math"
	"slices"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// ConnectChat registers a group, unless it is registered, and adds routes in their order, directly
// before the row with the id `before`; 0 is after all rows, and not before seq 0. It sets their id
// and seq. The caller has validated all of it. Rows after them may get a higher seq.
func ConnectChat(tx *store.Tx, g *msg.Group, routes []msg.Route, before int64) (fresh bool, err error) {
	tx.Note(failpoint.ConnectChat)
	if fresh, err = tx.PutGroup(g); err != nil {
		return false, err
	}
	seq, err := seqBefore(tx, before)
	if err != nil {
		return false, err
	}
	for i := range routes {
		routes[i].Seq = seq
		if err := tx.PutRoute(&routes[i]); err != nil {
			return false, err
		}
	}
	return fresh, nil
}

// seqBefore returns the seq with which new rows come directly before a row, 0 for the end.
func seqBefore(tx *store.Tx, id int64) (seq int64, err error) {
	if id == 0 {
		_, err = tx.Find([]any{&seq}, `SELECT max(0, ifnull(max(seq), 0)) FROM routes`)
		return seq, err
	}
	var crowded bool // rows of the same seq come before it
	_, err = tx.Find([]any{&seq, &crowded},
		`SELECT r.seq, EXISTS (SELECT 1 FROM routes o WHERE o.seq = r.seq AND o.id < r.id)
			FROM routes r WHERE r.id = ?`,
		id)
	if err != nil || !crowded && seq > math.MinInt64 {
		return seq - 1, err
	}
	return seq, tx.ShiftRoutes(seq, id)
}

// Route returns a route by id, nil if there is none.
func Route(ctx context.Context, r store.Reader, id int64) (*msg.Route, error) {
	routes, err := r.Routes(ctx)
	if i := slices.IndexFunc(routes, func(r msg.Route) bool { return r.ID == id }); i >= 0 {
		return &routes[i], err
	}
	return nil, err
}

// UpdateGroup replaces the name and config of a group and reports whether there
// is one.
func UpdateGroup(tx *store.Tx, g *msg.Group) (found bool, err error) {
	n, err := tx.Change(`UPDATE registered_groups SET name = ?, config = ? WHERE folder = ?`,
		g.Name, string(g.Config), g.Folder)
	return n > 0, err
}

// DeleteGroup removes a group with its permission rules, and reports whether there was one. The caller has
// checked that no route and no child group refers to it.
func DeleteGroup(tx *store.Tx, folder string) (found bool, err error) {
	if err := tx.Exec(`DELETE FROM permission_rules WHERE folder = ?`, folder); err != nil {
		return false, err
	}
	n, err := tx.Change(`DELETE FROM registered_groups WHERE folder = ?`, folder)
	return n > 0, err
}

// UpdateRoute replaces the row with r's id and reports whether there was one.
func UpdateRoute(tx *store.Tx, r *msg.Route) (found bool, err error) {
	n, err := tx.Change(`UPDATE routes SET seq = ?, match = ?, target = ?, impulse_config = ? WHERE id = ?`,
		r.Seq, r.Match, r.Target, store.Null(string(r.Impulse)), r.ID)
	return n > 0, err
}

// DeleteRoute removes a row and reports whether there was one.
func DeleteRoute(tx *store.Tx, id int64) (found bool, err error) {
	n, err := tx.Change(`DELETE FROM routes WHERE id = ?`, id)
	return n > 0, err
}
