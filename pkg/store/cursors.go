package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/failpoint"
)

const (
	BumpState = `INSERT INTO router_state (key, value) VALUES (?,1)
		ON CONFLICT (key) DO UPDATE SET value = router_state.value + 1`
	// DecisionNumber stands in a statement for the number of a decision, which NumberDecision has made.
	DecisionNumber = `(SELECT value FROM router_state WHERE key = 'decision_seq')`
)

// Keys of router_state.
const (
	StateDecisionSeq = "decision_seq"

	StateDemoAgent = "demo_agent"
)

// Keys of gated's cursors about operators who became ones by a code. The values are JSON.
const (
	OperatorsDaemon = "gated"
	OperatorPrefix  = "operator:" // and the sender
)

// MadeOperator is a sender who became an operator by a code.
type MadeOperator struct {
	Sender string `json:"-"`
	At     int64  `json:"at"` // unix ms
	By     string `json:"by"` // who made the code
}

// MadeOperators returns those who became operators by a code, sorted by their ids.
func (r Reader) MadeOperators(ctx context.Context) ([]MadeOperator, error) {
	rows, err := r.DaemonCursors(ctx, OperatorsDaemon, OperatorPrefix)
	all := make([]MadeOperator, 0, len(rows))
	for key, value := range rows {
		o := MadeOperator{}
		_ = json.Unmarshal([]byte(value), &o) // the key says who it is
		o.Sender = strings.TrimPrefix(key, OperatorPrefix)
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b MadeOperator) int { return cmp.Compare(a.Sender, b.Sender) })
	return all, err
}

// Operators returns the operators of now: those whom OPERATORS names, and those who became ones by a code.
func (r Reader) Operators(ctx context.Context, named map[string]bool) (map[string]bool, error) {
	made, err := r.MadeOperators(ctx)
	if err != nil || len(made) == 0 {
		return named, err
	}
	all := make(map[string]bool, len(named)+len(made))
	maps.Copy(all, named)
	for _, o := range made {
		all[o.Sender] = true
	}
	return all, nil
}

// PutCursor stores a daemon's value under a key, such as how far it has read.
func (tx *Tx) PutCursor(daemon, key, value string) error {
	tx.Note(failpoint.PutCursor)
	return tx.Exec(`INSERT INTO cursors (daemon, key, value) VALUES (?,?,?)
		ON CONFLICT (daemon, key) DO UPDATE SET value = excluded.value`,
		daemon, key, value)
}

// DeleteCursor deletes a daemon's value under a key.
func (tx *Tx) DeleteCursor(daemon, key string) error {
	return tx.Exec(`DELETE FROM cursors WHERE daemon = ? AND key = ?`, daemon, key)
}

// DaemonCursor is a daemon's value under a key, "" for none.
func (r Reader) DaemonCursor(ctx context.Context, daemon, key string) (string, error) {
	return Value[string](ctx, r, `SELECT value FROM cursors WHERE daemon = ? AND key = ?`, daemon, key)
}

// DaemonCursors returns a daemon's values by key, for keys with a prefix.
func (r Reader) DaemonCursors(ctx context.Context, daemon, prefix string) (map[string]string, error) {
	all := map[string]string{}
	_, err := All(ctx, r, func(scan Scan) (struct{}, error) {
		var key, value string
		err := scan(&key, &value)
		all[key] = value
		return struct{}{}, err
	}, `SELECT key, value FROM cursors WHERE daemon = ? AND substr(key, 1, length(?2)) = ?2`, daemon, prefix)
	return all, err
}
