// Package rows has the statements that gated alone needs, a file per noun.
//
// A statement that a single function runs stands in that function. testdata/plans.txt has the query plan of each.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
package rows
