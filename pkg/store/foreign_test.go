package store_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Foreign adapters write with their own SQLite: Debian 12 has 3.40. It evaluates
// defaults, checks, generated columns, triggers and partial indexes, so these may
// use only functions that it has.

// functionsOf340 are the functions of SQLite 3.40 that the schema may use.
func functionsOf340() []string {
	return []string{"abs", "coalesce", "ifnull", "iif", "instr", "json_valid", "julianday", "length", "lower", "max", "min", "nullif", "substr"}
}

var (
	quoted   = regexp.MustCompile(`'(?:[^']|'')*'`)
	comment  = regexp.MustCompile(`--[^\n]*`)
	beforeOf = regexp.MustCompile(`(?i)(\w+)?\s*\b(\w+)\s*\(`)
)

// functions lists the functions that a statement of the schema calls.
func functions(statement string) (names []string) {
	statement = quoted.ReplaceAllString(comment.ReplaceAllString(statement, ""), "''")
	keywords := []string{"check", "key", "unique", "in", "as", "exists", "cast", "values", "and", "or", "not", "default", "then", "when", "set", "select"}
	for _, m := range beforeOf.FindAllStringSubmatch(statement, -1) {
		before, name := strings.ToLower(m[1]), strings.ToLower(m[2])
		isTable := slices.Contains([]string{"table", "references", "on", "into", "using"}, before)
		if !isTable && !slices.Contains(keywords, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestSchema_ForeignClients_NeedOnlySQLite340(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.File(t), nil)
	n := storetest.Value[int](t, s, `SELECT count(*) FROM sqlite_master WHERE sql IS NOT NULL`)
	called := map[string]bool{}
	for i := range n {
		statement := storetest.Value[string](t, s, `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid LIMIT 1 OFFSET ?`, i)
		for _, name := range functions(statement) {
			called[name] = true
			if !slices.Contains(functionsOf340(), name) {
				t.Errorf("%s: %s() is not known to be in SQLite 3.40", strings.SplitN(statement, "(", 2)[0], name)
			}
		}
		if strings.Contains(statement, "subsec") {
			t.Errorf("%s: the modifier subsec is newer than SQLite 3.40: the value would be NULL", strings.SplitN(statement, "(", 2)[0])
		}
	}
	if !called["julianday"] || !called["json_valid"] {
		t.Errorf("the test found only calls of %v", called)
	}
}

func TestSchema_NewFunction_IsFound(t *testing.T) {
	t.Parallel()
	got := functions(`CREATE TABLE t (a INTEGER DEFAULT (CAST(unixepoch('sub(x)') AS INTEGER)), -- f(x)
		b TEXT CHECK (json_valid(b, 2)), c REFERENCES messages (id), CHECK (b IN ('x(y)')))`)
	if want := []string{"unixepoch", "json_valid"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSchema_Defaults_AreValues evaluates every default.
func TestSchema_Defaults_AreValues(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite3", storetest.File(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT s.name, c.name, c.dflt_value, c."notnull", c.type FROM sqlite_master s, pragma_table_info(s.name) c
		WHERE s.type = 'table' AND c.dflt_value IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var table, column, value, kind string
		var notNull bool
		if err := rows.Scan(&table, &column, &value, &notNull, &kind); err != nil {
			t.Fatal(err)
		}
		var got sql.NullString
		if err := db.QueryRow(`SELECT typeof(` + value + `)`).Scan(&got); err != nil || notNull && !strings.EqualFold(got.String, kind) {
			t.Errorf("%s.%s: default %s is %s, not %s (%v)", table, column, value, got.String, kind, err)
		}
	}
	if err := rows.Err(); err != nil || n < 20 {
		t.Fatalf("%d defaults, %v", n, err)
	}
}

// TestPins_EmptyText_IsNone has pins that a foreign client cleared with ”.
func TestPins_EmptyText_IsNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i, value := range []any{nil, ""} {
		jid := fmt.Sprint("telegram:", i)
		storetest.Write(t, s, func(tx *store.Tx) error {
			if err := tx.PutChat(jid, msg.ChatGroup, "", 1); err != nil {
				return err
			}
			return tx.Exec(`UPDATE chats SET sticky_topic = ?1, sticky_group = ?1 WHERE jid = ?2`, value, jid)
		})
		if c := storetest.Must(s.Chat(t.Context(), jid))(t); c.StickyTopic != "" || c.StickyGroup != "" {
			t.Errorf("pins %v are %+v", value, c)
		}
	}
}
