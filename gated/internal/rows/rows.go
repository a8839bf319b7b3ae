// Package rows has the statements that gated alone needs, a file per noun.
//
// A statement that a single function runs stands in that function. testdata/plans.txt has the query plan of each.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
package rows

import (
	"fmt"

	"arizuko/pkg/store"
)

// change runs a statement that changes one row. If there is no such row, it returns ErrStale, with a
// verb and the id of the row.
func change(tx *store.Tx, verb string, id int64, query string, args ...any) error {
	n, err := tx.Change(query, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s %d: %w", verb, id, store.ErrStale)
	}
	return err
}
