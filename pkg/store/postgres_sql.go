package store

import (
	"regexp"
	"strconv"
	"strings"
)

// sqliteWords are what the statements of this package say in SQLite's way: parameters, hints for its planner, and
// functions that have another name in Postgres. Texts in quotes come first: nothing inside is changed.
var sqliteWords = regexp.MustCompile(`'(?:[^']|'')*'|\?\d*(?:\+0)?|\b(?:INDEXED BY \w+|NOT INDEXED|CROSS JOIN|ifnull|LIKE|AS INTEGER|group_concat)\b`)

// Translate returns a statement in SQLite's words as a Postgres server takes it. It is for programs that run statements
// of their own on both, as tests do.
func Translate(query string) string { return new(postgres).translate(query) }

// translate returns a statement for Postgres: numbered parameters, no hints. ?+0, which keeps SQLite from planning
// again, is a number. A statement that no word-by-word translation does for is in postgresStatements.
func (e *postgres) translate(query string) string {
	if own, found := postgresStatements[query]; found {
		query = own
	}
	query = strings.ReplaceAll(query, cutContent, "substr(m.content, 1, 262144)")
	query = strings.ReplaceAll(query, clock, "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")
	last := 0
	return sqliteWords.ReplaceAllStringFunc(query, func(word string) string {
		switch word[0] {
		case '\'':
			return word
		case 'I', 'N':
			return ""
		case 'C':
			return "JOIN"
		case 'i':
			return "coalesce"
		case 'L':
			return "ILIKE"
		case 'A':
			return "AS bigint"
		case 'g':
			return "string_agg"
		}
		number, computed := strings.CutSuffix(word[1:], "+0")
		n, err := strconv.Atoi(number)
		if err != nil {
			n = last + 1
		}
		last = max(last, n)
		if computed {
			return "$" + strconv.Itoa(n) + "::bigint"
		}
		return "$" + strconv.Itoa(n)
	})
}
