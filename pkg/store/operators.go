package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
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
