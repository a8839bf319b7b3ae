package docs

import (
	"database/sql"
	"regexp"
	"slices"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the database/sql driver

	"arizuko/pkg/store/storetest"
)

var tableHeading = regexp.MustCompile("(?m)^### `(\\w+)`")

func TestSchema_EveryTableAndColumn_IsDescribed(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/reference/schema.md")
	stored := schema(t)
	described := map[string]bool{}
	for _, m := range tableHeading.FindAllStringSubmatch(page, -1) {
		table := m[1]
		described[table] = true
		columns, ok := stored[table]
		if !ok {
			t.Errorf("the page describes %s, which is not in the schema", table)
			continue
		}
		checkColumns(t, table, columns, section(t, page, m[0]))
	}
	for table := range stored {
		if !described[table] {
			t.Errorf("the page has no table %s", table)
		}
	}
}

// oneWriter is the line above a table whose columns all have the same writer.
var oneWriter = regexp.MustCompile(`(?m)^Writer: (.+)\.$`)

// checkColumns compares the rows of a table's section with its columns, in their order.
func checkColumns(t *testing.T, table string, columns []string, text string) {
	t.Helper()
	var names []string
	for _, row := range rows(text) {
		if m := oneWriter.FindStringSubmatch(text); m != nil && len(row) == 2 {
			row = []string{row[0], m[1], row[1]}
		}
		if len(row) != 3 || row[2] == "" {
			t.Errorf("%s: row %q does not have column, writer and meaning", table, row)
			continue
		}
		names = append(names, codes(row[0])...)
	}
	if !slices.Equal(names, columns) {
		t.Errorf("%s: the page has the columns\n%q\nthe schema\n%q", table, names, columns)
	}
}

// schema returns the columns of each table of a migrated database, generated ones included. Tables that SQLite makes for a
// virtual table are not ours.
func schema(t *testing.T) map[string][]string {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+storetest.Path(t)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query(`SELECT s.name, c.name FROM pragma_table_list s, pragma_table_xinfo(s.name) c
		WHERE s.schema = 'main' AND s.type IN ('table', 'virtual') AND c.hidden <> 1 AND s.name NOT LIKE 'sqlite_%' ORDER BY s.name, c.cid`)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	tables := map[string][]string{}
	for found.Next() {
		var table, column string
		if err := found.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		tables[table] = append(tables[table], column)
	}
	if err := found.Err(); err != nil || len(tables) == 0 {
		t.Fatalf("%d tables: %v", len(tables), err)
	}
	return tables
}
