package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

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

// SeqBefore returns the seq with which new rows come directly before a row, 0 for the end.
func (tx *Tx) SeqBefore(id int64) (seq int64, err error) {
	if id == 0 {
		_, err = tx.Find([]any{&seq}, `SELECT max(0, ifnull(max(seq), 0)) FROM routes`)
		return seq, err
	}
	var crowded bool // rows of the same seq come before it
	_, err = tx.Find([]any{&seq, &crowded},
		`SELECT r.seq, EXISTS (SELECT 1 FROM routes o WHERE o.seq = r.seq AND o.id < r.id)
		FROM routes r WHERE r.id = ?`, id)
	if err != nil || !crowded && seq > math.MinInt64 {
		return seq - 1, err
	}
	return seq, tx.shiftRoutes(seq, id)
}

// errNoCounter means that a row of counters was deleted by hand.
var errNoCounter = errors.New("the table counters lacks its row 'routing': changes of routes and groups are not counted")

// RoutingVersion grows with each change of routes or groups, also by other processes or by SQL.
func (r Reader) RoutingVersion(ctx context.Context) (version int64, err error) {
	found, err := r.Get(ctx, []any{&version}, queryRoutingVersion)
	if err == nil && !found {
		err = errNoCounter
	}
	return version, err
}
