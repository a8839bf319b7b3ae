package pg

import (
	"regexp"
	"strconv"
	"strings"
)

// sqliteWords are the words of SQLite that have others in Postgres: parameters, hints for its planner, and
// functions that have another name in Postgres. Texts in quotes come first: nothing inside is changed.
var sqliteWords = regexp.MustCompile(`'(?:[^']|'')*'|\?\d*(?:\+0)?|\b(?:INDEXED BY \w+|NOT INDEXED|CROSS JOIN|ifnull|LIKE|AS INTEGER|group_concat)\b`)

// Translate returns a statement for Postgres: numbered parameters, no hints. ?+0, which keeps SQLite from planning
// again, is a number.
func Translate(query string) string {
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
