package store_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Both histories of migrations end in the same tables, columns and indexes. The full-text index is each engine's own.
func TestSchema_OfBothEngines_IsTheSame(t *testing.T) {
	t.Parallel()
	if storetest.Server() == "" {
		t.Skip("without a server; `make test DB=postgres` has one")
	}
	file, server := storetest.OpenAt(t, storetest.File(t), nil), storetest.Open(t)
	for what, queries := range map[string][2]string{
		"columns": {
			`SELECT group_concat(line, '; ') FROM (SELECT t.name || '.' || c.name || ' ' || CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'TEXT' THEN 'text'
				ELSE 'double precision' END || CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN ' NOT NULL' ELSE '' END AS line
				FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c WHERE t.schema = 'main' AND t.type = 'table'
				AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE 'message_search%' AND t.name <> 'schema_migrations' ORDER BY 1)`,
			`SELECT group_concat(line, '; ' ORDER BY line) FROM (SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type ||
				CASE c.is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END COLLATE "C" AS line FROM information_schema.columns c
				JOIN information_schema.tables t ON t.table_name = c.table_name AND t.table_type = 'BASE TABLE' AND t.table_schema = c.table_schema
				WHERE c.table_schema = 'public' AND c.table_name NOT IN ('message_search', 'schema_migrations')) l`,
		},
		"indexes": {
			`SELECT group_concat(name, '; ') FROM (SELECT name FROM sqlite_schema WHERE type = 'index' AND name NOT LIKE 'sqlite_%' AND tbl_name <> 'schema_migrations'
				ORDER BY 1)`,
			`SELECT group_concat(name, '; ' ORDER BY name) FROM (SELECT indexname COLLATE "C" AS name FROM pg_indexes WHERE schemaname = 'public'
				AND indexname NOT LIKE '%_pkey' AND indexname NOT LIKE '%_key' AND tablename <> 'message_search') i`,
		},
	} {
		want, got := strings.Split(storetest.Value[string](t, file, queries[0]), "; "), strings.Split(storetest.Value[string](t, server, queries[1]), "; ")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of the file (-) and of the server (+):\n%s", what, diff)
		}
	}
}

// A server's statements are those of SQLite word by word: a parameter keeps its number, a text stays as it is.
func TestTranslate_WordsOfSQLite_BecomeThoseOfPostgres(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`SELECT ifnull(a, '?') FROM t INDEXED BY t_a WHERE b = ? AND c = ?`:          `SELECT coalesce(a, '?') FROM t  WHERE b = $1 AND c = $2`,
		`SELECT 1 FROM t NOT INDEXED WHERE a = ?2 AND b > ?1 LIMIT ?3+0`:             `SELECT 1 FROM t  WHERE a = $2 AND b > $1 LIMIT $3::bigint`,
		`SELECT 'it''s ifnull(?)' FROM a CROSS JOIN b ON b.x = CAST(a.y AS INTEGER)`: `SELECT 'it''s ifnull(?)' FROM a JOIN b ON b.x = CAST(a.y AS bigint)`,
		`SELECT a FROM t WHERE b LIKE 'x%' AND c = ?1 AND d = ?`:                     `SELECT a FROM t WHERE b ILIKE 'x%' AND c = $1 AND d = $2`,
	} {
		if got := store.Translate(query); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", query, got, want)
		}
	}
}
