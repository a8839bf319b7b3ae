package main

import (
	"database/sql"
	"regexp"
	"slices"
	"strings"
)

// brokenRule is a rule that SQLite's error names, without the row that breaks it.
type brokenRule struct {
	tables  []string // where it may be, the likeliest first
	columns []string // that it is about, as far as the error says
	broken  string   // the condition of the rows t that break it
}

// What SQLite says of a row that breaks a rule. Columns have their table before them.
var (
	failedCheck  = regexp.MustCompile(`(?s)CHECK constraint failed: (.+)`)
	failedUnique = regexp.MustCompile(`UNIQUE constraint failed: ([^\s,]+\.[^\s,]+(?:, [^\s,]+)*)`)
	failedNull   = regexp.MustCompile(`NOT NULL constraint failed: (\S+\.\S+)`)
	failedType   = regexp.MustCompile(`cannot store (\w+) value in \w+ column (\S+\.\S+)`)
)

// refusedRow names the table and a row of it for which a migration failed, as an end of the error; "" if that is not
// known.
func (c config) refusedRow(db querier, failed error) string {
	if c.server != "" {
		return "" // which says it
	}
	rule := ruleOf(db, failed.Error())
	if len(rule.tables) == 0 {
		return ""
	}
	named := " in table " + strings.Join(rule.tables, " or ")
	var row string
	expression, err := shownRow(db, rule.tables[0], rule.columns)
	if err == nil {
		// It finds nothing where the rule is about a column that the table has not had before.
		_ = each(db, func(rows *sql.Rows) error { return rows.Scan(&row) },
			"SELECT "+expression+" FROM "+quoted(rule.tables[0])+" AS t WHERE "+rule.broken+" LIMIT 1")
	}
	if row != "" {
		named += ", " + printable(row)
	}
	return named
}

func ruleOf(db querier, failed string) (r brokenRule) {
	if m := failedCheck.FindStringSubmatch(failed); m != nil {
		return brokenRule{tables: tablesWith(db, m[1]), broken: "NOT (" + m[1] + ")"}
	}
	if m := failedUnique.FindStringSubmatch(failed); m != nil {
		r.add(strings.Split(m[1], ", ")...)
		var all []string
		for _, name := range r.columns {
			all = append(all, quoted(name))
		}
		same := strings.Join(all, ", ")
		r.broken = "(" + same + ") IN (SELECT " + same + " FROM " + quoted(r.tables[0]) + " GROUP BY " + same +
			" HAVING count(*) > 1)"
	} else if m := failedNull.FindStringSubmatch(failed); m != nil {
		r.add(m[1])
		r.broken = quoted(r.columns[0]) + " IS NULL"
	} else if m := failedType.FindStringSubmatch(failed); m != nil {
		r.add(m[2])
		kind := strings.Replace(strings.ToLower(m[1]), "int", "integer", 1)
		r.broken = "typeof(" + quoted(r.columns[0]) + ") = " + literal(kind)
	}
	return r
}

// add adds columns, each with its table before it.
func (r *brokenRule) add(columns ...string) {
	for _, column := range columns {
		table, name, _ := strings.Cut(column, ".")
		r.tables, r.columns = []string{original(table)}, append(r.columns, name)
	}
}

// tablesWith are the tables with a condition in their SQL.
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
