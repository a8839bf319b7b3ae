package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"arizuko/pkg/msg"
)

func scanRoute(scan Scan) (r msg.Route, err error) {
	var impulse string
	if err = scan(&r.ID, &r.Seq, &r.Match, &r.Target, &impulse); err != nil {
		return r, fmt.Errorf("scan route: %w", err)
	}
	r.Impulse = asJSON(impulse)
	return r, nil
}

// asJSON returns the text of a JSON column, which operators may have edited by
// hand: nil if it is empty, and a JSON string if it is not JSON, so that the row
// can be shown and its reader can reject the value.
func asJSON(text string) json.RawMessage {
	switch {
	case text == "":
		return nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string always marshals
	return quoted
}

// Routes returns the routing table in order of evaluation.
func (r Reader) Routes(ctx context.Context) ([]msg.Route, error) {
	return All(ctx, r, scanRoute, `SELECT id, seq, match, target, ifnull(impulse_config,'') FROM routes ORDER BY seq, id`)
}

// PutRoute adds a row and sets its id. The caller has validated it.
func (tx *Tx) PutRoute(r *msg.Route) (err error) {
	r.ID, err = tx.Insert(`INSERT INTO routes (seq, match, target, impulse_config) VALUES (?,?,?,?)`,
		r.Seq, r.Match, r.Target, Null(string(r.Impulse)))
	return err
}

// ShiftRoutes makes room between the rows of a seq: those from an id on, and all of a higher seq, get
// the next seq.
func (tx *Tx) ShiftRoutes(seq, id int64) error {
	if err := tx.Exec(`UPDATE routes SET seq = seq + 1 WHERE seq > ?`, seq); err != nil {
		return err
	}
	return tx.Exec(`UPDATE routes SET seq = seq + 1 WHERE seq = ? AND id >= ?`, seq, id)
}

// errNoCounter means that a row of counters was deleted by hand.
var errNoCounter = errors.New("the table counters lacks its row 'routing': changes of routes and groups " +
	"are not counted")

// RoutingVersion grows with each change of routes or groups, also by other processes or by SQL.
func (r Reader) RoutingVersion(ctx context.Context) (version int64, err error) {
	found, err := r.Get(ctx, []any{&version}, `SELECT value FROM counters WHERE name = 'routing'`)
	if err == nil && !found {
		err = errNoCounter
	}
	return version, err
}

const selectGroups = `SELECT folder, name, created_at, config FROM registered_groups`

func scanGroup(scan Scan) (g msg.Group, err error) {
	var config string
	if err = scan(&g.Folder, &g.Name, &g.CreatedAt, &config); err != nil {
		return g, fmt.Errorf("scan group: %w", err)
	}
	g.Config = json.RawMessage(config)
	return g, nil
}

// Groups returns every registered group, sorted by folder.
func (r Reader) Groups(ctx context.Context) ([]msg.Group, error) {
	return All(ctx, r, scanGroup, selectGroups+` ORDER BY folder`)
}

// Group returns one group, nil if the folder is not registered.
func (r Reader) Group(ctx context.Context, folder string) (*msg.Group, error) {
	groups, err := All(ctx, r, scanGroup, selectGroups+` WHERE folder = ?`, folder)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	return &groups[0], nil
}

// PutGroup registers a group. If its folder is registered already, nothing
// changes and fresh is false.
func (tx *Tx) PutGroup(g *msg.Group) (fresh bool, err error) {
	n, err := tx.Change(`INSERT INTO registered_groups (folder, name, created_at, config) VALUES (?,?,?,?)
		ON CONFLICT (folder) DO NOTHING`,
		g.Folder, g.Name, g.CreatedAt, string(g.Config))
	return n > 0, err
}
