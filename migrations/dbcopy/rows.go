package dbcopy

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is a table whose rows are copied.
type table struct {
	name     string
	columns  []string // without those that the database computes
	key      []string // the primary key
	where    string   // which rows are copied, "" for all
	numbered bool     // the database gives each row an id, and none twice
}

// list is the columns as SQL.
func (t table) list() string { return quoted(t.columns) }

func (t table) selection() string {
	query := "SELECT " + t.list() + " FROM " + quote(t.name) + t.condition()
	if len(t.key) > 0 {
		query += " ORDER BY " + quoted(t.key) // so that rows which are near in one database are near in the other
	}
	return query
}

func (t table) condition() string {
	if t.where == "" {
		return ""
	}
	return " WHERE " + t.where
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoted(names []string) string {
	all := slices.Clone(names)
	for i := range all {
		all[i] = quote(all[i])
	}
	return strings.Join(all, ", ")
}

// copiedRows are conditions for rows that belong to an instance, not to a database.
var copiedRows = map[string]string{
	"counters":     "name NOT LIKE 'writer/%' AND name <> 'deliveries'", // marks of writers; see numbers
	"cursors":      "daemon <> 'migrate'",                               // the mark of a copy
	"processes":    "1 = 0",                                             // those that work on a server; their ids go on, since runs have them
	"router_state": "key <> 'decision_seq'",                             // see numbers
}

// The other tables that belong to a database: the version of the schema, the full-text index, which dashd makes again,
// and the leases of processes.
var notCopied = []string{"schema_migrations", "schema_floor", "search_state", "search_deleted", "message_search",
	"leases"}

// reportEvery is how many rows there are between two calls of Options.Progress.
const reportEvery = 2048

// rows are rows of a table, with an int64, float64, string or nil for each column. They are cleaned and summed up as
// they are read.
type rows struct {
	*sql.Rows
	row, into []any
	progress  Progress
	report    func(Progress) error
	sum       sum
	cleaned   int64
}

func newRows(found *sql.Rows, columns int) *rows {
	r := &rows{Rows: found, row: make([]any, columns), into: make([]any, columns)}
	for i := range r.row {
		r.into[i] = &r.row[i]
	}
	return r
}

// Values returns the row that Next has read, until the next call.
func (r *rows) Values() ([]any, error) {
	if err := r.Scan(r.into...); err != nil {
		return nil, err
	}
	for i, value := range r.row {
		if text, ok := value.(string); ok && !isClean(text) {
			r.row[i] = cleanText(text)
			r.cleaned++
		}
	}
	if err := r.sum.add(r.row); err != nil {
		return nil, err
	}
	if r.progress.Rows++; r.progress.Rows%reportEvery == 0 || r.progress.Rows == r.progress.Total {
		if err := r.report(r.progress); err != nil {
			return nil, err
		}
	}
	return r.row, nil
}

func (r *rows) table() Table {
	return Table{Name: r.progress.Table, Rows: r.progress.Rows, Sum: r.sum.String()}
}

// sum is the sum of the SHA-256 of all rows, each as four numbers: the same in any order, another one if a row is
// missing, is there twice or differs.
type sum struct {
	numbers [4]uint64
	buf     []byte
}

func (s *sum) add(row []any) error {
	s.buf = s.buf[:0]
	for _, value := range row {
		switch v := value.(type) {
		case nil:
			s.buf = append(s.buf, 0)
		case int64:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 1), uint64(v))
		case float64:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 2), math.Float64bits(v))
		case string:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 3), uint64(len(v)))
			s.buf = append(s.buf, v...)
		default:
			return fmt.Errorf("a column has a value of type %T", value)
		}
	}
	hash := sha256.Sum256(s.buf)
	for i := range s.numbers {
		s.numbers[i] += binary.BigEndian.Uint64(hash[8*i:])
	}
	return nil
}

func (s *sum) String() string {
	var all []byte
	for _, n := range s.numbers {
		all = binary.BigEndian.AppendUint64(all, n)
	}
	return hex.EncodeToString(all)
}

// isClean reports whether Postgres takes a text.
func isClean(text string) bool { return strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) }

// cleanText returns a text as the store would have written it to a server: without NUL, and with � for invalid UTF-8.
func cleanText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), string(utf8.RuneError))
}
