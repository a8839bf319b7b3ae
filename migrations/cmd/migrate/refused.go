package main

import (
	"database/sql"
	"regexp"
	"slices"
	"strings"
)

// The errors of SQLite for a row that breaks a rule. They name the rule and not the row. Columns have their table
// before them.
var (
	failedCheck  = regexp.MustCompile(`(?s)CHECK constraint failed: (.+)`)
	failedUnique = regexp.MustCompile(`UNIQUE constraint failed: ([^\s,]+\.[^\s,]+(?:, [^\s,]+)*)`)
	failedNull   = regexp.MustCompile(`NOT NULL constraint failed: (\S+\.\S+)`)
	failedType   = regexp.MustCompile(`cannot store (\w+) value in \w+ column (\S+\.\S+)`)
)

// refusedRows names the table for whose rows a migration failed and a statement that shows these, as the end of the
// error. It is "" if the table is not known, and on a server, whose error names the row.
func (c config) refusedRows(db querier, failed error) string {
	if c.server != "" {
		return ""
	}
	tables, broken := brokenRule(db, failed.Error())
	if len(tables) == 0 {
		return ""
	}
	named := " in table " + strings.Join(tables, " or ")
	rows, found := "SELECT * FROM "+quoted(tables[0])+" WHERE "+broken, false
	err := each(db, func(*sql.Rows) error { found = true; return nil }, rows+" LIMIT 1")
	if err == nil && found { // the rule may be about a column that the table did not have before
		named += ": " + printable(rows) + " shows the rows"
	}
	return named
}

// brokenRule returns the tables that the broken rule may belong to, the likeliest first, and the condition of the rows
// that break it.
func brokenRule(db querier, failed string) (tables []string, broken string) {
	if m := failedCheck.FindStringSubmatch(failed); m != nil {
		return tablesWith(db, m[1]), "NOT (" + m[1] + ")"
	}
	if m := failedUnique.FindStringSubmatch(failed); m != nil {
		var table string
		columns := strings.Split(m[1], ", ")
		for i := range columns {
			table, columns[i] = splitColumn(columns[i])
		}
		same := strings.Join(columns, ", ")
		return []string{table}, "(" + same + ") IN (SELECT " + same + " FROM " + quoted(table) + " GROUP BY " + same +
			" HAVING count(*) > 1)"
	}
	if m := failedNull.FindStringSubmatch(failed); m != nil {
		table, column := splitColumn(m[1])
		return []string{table}, column + " IS NULL"
	}
	if m := failedType.FindStringSubmatch(failed); m != nil {
		table, column := splitColumn(m[2])
		kind := strings.Replace(strings.ToLower(m[1]), "int", "integer", 1)
		return []string{table}, "typeof(" + column + ") = '" + kind + "'"
	}
	return nil, ""
}

func splitColumn(name string) (table, column string) {
	table, column, _ = strings.Cut(name, ".")
	return original(table), quoted(column)
}

// tablesWith returns the tables whose SQL contains a condition.
func tablesWith(db querier, condition string) (tables []string) {
	err := each(db, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		tables = append(tables, original(name))
		return err
	}, `SELECT name FROM sqlite_master WHERE type = 'table' AND instr(sql, ?) > 0 ORDER BY name LIKE '%\_new' ESCAPE '\' DESC`, condition)
	if err != nil {
		return nil
	}
	return slices.Compact(tables)
}

// original is the name of a table that a migration rebuilds: the rows are in the old one until that is replaced.
func original(table string) string { return strings.TrimSuffix(table, "_new") }
