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
	key           foreignKey
}

// foreignKey has the columns of a reference and those that they refer to.
type foreignKey struct {
	from, to []string
	nullable bool // all of them may be empty
}

func (r reference) String() string {
	return fmt.Sprintf("%d rows of %s refer to rows of %s that are not there", r.rows, r.table, r.parent)
}

// querier is a database or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
}

// brokenReferences returns an error that lists the foreign keys that rows break, with a statement that shows the rows;
// nil if none do. Migrations run without foreign keys, so nothing else finds such rows. A server checks each statement.
func (c config) brokenReferences(db querier) error {
	all, err := c.broken(db)
	var lines []string
	for _, r := range all {
		lines = append(lines, fmt.Sprintf("%s (SELECT * FROM %s AS t WHERE %s)", r, quoted(r.table), r.breaks()))
	}
	if err == nil && len(lines) > 0 {
		err = errors.New(strings.Join(lines, "; "))
	}
	return err
}

func (c config) broken(db querier) (all []reference, err error) {
	if c.server != "" {
		return nil, nil
	}
	err = each(db, func(rows *sql.Rows) error {
		var r reference
		err := rows.Scan(&r.table, &r.parent, &r.id, &r.rows)
		all = append(all, r)
		return err
	}, `SELECT "table", parent, fkid, count(*) FROM pragma_foreign_key_check GROUP BY "table", parent, fkid ORDER BY "table", fkid`)
	for i := range all {
		if err == nil {
			all[i].key, err = all[i].columns(db)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("check foreign keys: %w", err)
	}
	return all, nil
}

func (r reference) columns(db querier) (k foreignKey, err error) {
	k.nullable = true
	err = each(db, func(rows *sql.Rows) error {
		var from, to string
		var required bool
		err := rows.Scan(&from, &to, &required)
		k.from, k.to, k.nullable = append(k.from, from), append(k.to, to), k.nullable && !required
		return err
	}, `SELECT l."from", l."to", i."notnull" OR i.pk > 0 FROM pragma_foreign_key_list(?) l JOIN pragma_table_info(?) i ON i.name = l."from"
		WHERE l.id = ? ORDER BY l.seq`, r.table, r.table, r.id)
	return k, err
}

// breaks is the condition of the rows t that break the reference.
func (r reference) breaks() string {
	var given, same []string
	for i, from := range r.key.from {
		given = append(given, "t."+quoted(from)+" IS NOT NULL")
		same = append(same, "p."+quoted(r.key.to[i])+" = t."+quoted(from))
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

// repair makes no row refer to one that is not there, after keep: a reference that may be empty becomes empty, and else
// the row is deleted. It returns a line for each repair.
func (s *schema) repair(keep keeper) (done []string, err error) {
	now, err := s.check()
	if err == nil && now.number > s.latest {
		err = s.checkFloor(now)
	}
	if err != nil {
		return nil, err
	}
	if all, err := s.cfg.broken(s.db); err != nil || len(all) == 0 {
		return nil, err
	}
	path, err := keep(s, now)
	if err != nil {
		return nil, err
	}
	if path != "" {
		done = []string{"the database as it was is kept in " + path}
	}
	tx, err := s.db.Begin()
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	for {
		all, err := s.cfg.broken(tx) // deleted rows may have had others that refer to them
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return done, tx.Commit()
		}
		for _, r := range all {
			did, err := r.empty(tx)
			if err != nil {
				return nil, fmt.Errorf("%s, and cannot be repaired: %w; nothing was changed", r, err)
			}
			done = append(done, r.String()+": "+did)
		}
	}
}

// empty empties a reference in the rows that break it, or deletes them.
func (r reference) empty(tx *sql.Tx) (did string, err error) {
	query, did := "DELETE FROM "+quoted(r.table)+" AS t", "deleted"
	if r.key.nullable {
		var set []string
		for _, from := range r.key.from {
			set = append(set, quoted(from)+" = NULL")
		}
		query, did = "UPDATE "+quoted(r.table)+" AS t SET "+strings.Join(set, ", "), "the reference was emptied"
	}
	res, err := tx.Exec(query + " WHERE " + r.breaks())
	if err != nil {
		return "", err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return "", errors.Join(err, errors.New("no row was changed"))
	}
	return did, nil
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
