package main

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// reference is a foreign key of a table that some of its rows break: they refer to rows that are not there.
type reference struct {
	table, parent string
	id            int // among the foreign keys of the table
	rows          int64
	from, to      []string // the columns, and those that they refer to
}

// querier is a database or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
}

// brokenReferences returns an error that lists the foreign keys that rows break, with a statement that shows the rows;
// nil if none do. Migrations run without foreign keys, so nothing else finds such rows. A server checks each statement.
func (c config) brokenReferences(db querier) error {
	if c.server != "" {
		return nil
	}
	var all []reference
	err := each(db, func(rows *sql.Rows) error {
		var r reference
		err := rows.Scan(&r.table, &r.parent, &r.id, &r.rows)
		all = append(all, r)
		return err
	}, `SELECT "table", parent, fkid, count(*) FROM pragma_foreign_key_check GROUP BY "table", parent, fkid ORDER BY "table", fkid`)
	var lines []string
	for _, r := range all {
		if err == nil {
			err = r.readColumns(db)
		}
		lines = append(lines, fmt.Sprintf("%d rows of %s refer to rows of %s that are not there (SELECT * FROM %s AS t WHERE %s)",
			r.rows, r.table, r.parent, quoted(r.table), r.breaks()))
	}
	switch {
	case err != nil:
		return fmt.Errorf("check foreign keys: %w", err)
	case len(lines) > 0:
		return errors.New(strings.Join(lines, "; "))
	}
	return nil
}

func (r *reference) readColumns(db querier) error {
	return each(db, func(rows *sql.Rows) error {
		var from, to string
		err := rows.Scan(&from, &to)
		r.from, r.to = append(r.from, from), append(r.to, to)
		return err
	}, `SELECT "from", "to" FROM pragma_foreign_key_list(?) WHERE id = ? ORDER BY seq`, r.table, r.id)
}

// breaks is the condition of the rows t that break the reference.
func (r reference) breaks() string {
	var given, same []string
	for i, from := range r.from {
		given = append(given, "t."+quoted(from)+" IS NOT NULL")
		same = append(same, "p."+quoted(r.to[i])+" = t."+quoted(from))
	}
	return strings.Join(given, " AND ") + " AND NOT EXISTS (SELECT 1 FROM " + quoted(r.parent) + " AS p WHERE " +
		strings.Join(same, " AND ") + ")"
}

// each calls scan for each row of an answer.
func each(db querier, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// printable is a text from the database without control characters, which a terminal might obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
