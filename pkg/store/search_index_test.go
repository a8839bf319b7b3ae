package store_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/migrations"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestSearchQuery_WhatUsersType_IsAnExpression(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		" - \" ' * () 😀 \x00 \xff": "",
		"Hello world":              `"Hello" "world"`,
		`"to be" or NOT near/3`:    `"to be" "or" "NOT" "near 3"`,
		"e-mail https://x.org/a_b": `"e mail" "https x org a" "x org a b"`,
		"dep* d* *x naïve*":        `"dep*" "d" "x" "naïve*"`,
		"猫 備份 단어 a":                `"猫*" "備份*" "단어*" "a"`,
		`"unfinished phrase`:       `"unfinished phrase"`,
		`a AND (b OR c) content:d`: `"a" "AND" "b" "OR" "c" "content d"`,
		`"a b c d e f"`:            `"a b c d" "b c d e" "c d e f"`,
		strings.Repeat("w", 300):   `"` + strings.Repeat("w", 256) + `*"`,
	} {
		if got := store.SearchQuery(text); got != want {
			t.Errorf("%q became %s, want %s", text, got, want)
		}
	}
	if got := strings.Count(store.SearchQuery(strings.Repeat("w ", 1000)), " "); got != 15 {
		t.Errorf("%d words", got+1)
	}
}

// indexAll puts all rows into the index.
func indexAll(t testing.TB, s *store.Store) {
	t.Helper()
	for more := true; more; {
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			_, more, err = tx.IndexMessages()
			return err
		})
	}
}

// checkIndex compares the index with the texts.
func checkIndex(t testing.TB, s *store.Store) {
	t.Helper()
	if s.Path() == "" {
		return // a server checks its indexes itself
	}
	if lines := storetest.Must(store.Damage(t.Context(), s.Path()))(t); len(lines) > 0 {
		t.Errorf("the database is damaged: %q", lines)
	}
}

// TestSearchMigration_DownAndUp_KeepsMessages undoes the migration of the index with rows in it.
func TestSearchMigration_DownAndUp_KeepsMessages(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	fill(t, s, 1, 300, "word")
	indexAll(t, s)
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	steps := storetest.Must(migrations.Up())(t)
	i := slices.IndexFunc(steps, func(m migrations.Migration) bool { return m.Name == "search" })
	down := storetest.Must(migrations.FS.ReadFile(fmt.Sprintf("%04d_search.down.sql", steps[i].Version)))(t)
	for _, statement := range []string{string(down), `DELETE FROM messages WHERE id <= 100`, steps[i].SQL} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	indexAll(t, s)
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM message_search WHERE message_search MATCH 'word'`); n != 200 {
		t.Errorf("%d in the index", n)
	}
	checkIndex(t, s)
}
