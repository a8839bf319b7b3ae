package main

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts is how many rows the tables have.
type counts map[string]int64

// count counts the rows of each table.
func (s *schema) count() (counts, error) {
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_migrations'`
	if s.cfg.server != "" {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'schema_migrations'`
	}
	all := counts{}
	err := each(s.db, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		all[name] = 0
		return err
	}, query)
	for name := range all {
		var n int64
		if err == nil {
			err = s.db.QueryRow(`SELECT count(*) FROM ` + quoted(name)).Scan(&n)
		}
		all[name] = n
	}
	if err != nil {
		return nil, fmt.Errorf("count rows: %w", err)
	}
	return all, nil
}

// receipt says what became of the rows that there were: first the tables that have lost or gained some.
func receipt(before, after counts) string {
	var changed, same []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		now, there := after[name]
		switch {
		case was == 0 && now == 0:
		case !there:
			changed = append(changed, fmt.Sprintf("%s %d, now there is no such table", name, was))
		case was != now:
			changed = append(changed, fmt.Sprintf("%s %d, now %d", name, was, now))
		default:
			same = append(same, fmt.Sprintf("%s %d", name, was))
		}
	}
	if len(changed) == 0 {
		changed = []string{"none"}
	}
	return "tables with another number of rows than before: " + strings.Join(changed, "; ") + "\nmigrate: unchanged: " + strings.Join(same, ", ")
}
