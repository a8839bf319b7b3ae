package dbcopy

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver

	"arizuko/migrations"
	"arizuko/pkg/store/storetest"
)

//go:embed testdata/rows.sql
var testRows string

// newDatabase makes an empty database on the server that `make test DB=postgres` starts.
func newDatabase(t *testing.T) string {
	t.Helper()
	if storetest.Server() == "" {
		t.Skip("without a server; `make test DB=postgres` has one")
	}
	return storetest.Empty(t)
}

func execServer(t *testing.T, database, statements string) {
	t.Helper()
	ctx := context.Background() // also when the test has ended
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, statements).ReadAll(); err != nil {
		t.Fatalf("%.80s: %v", statements, err)
	}
}

// newFile makes a migrated database file.
func newFile(t *testing.T, statements string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arizuko.db")
	f, err := makeFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.makeSchema(t.Context()), f.finish()); err != nil {
		t.Fatal(err)
	}
	execFile(t, path, statements)
	return path
}

func execFile(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path+"?_foreign_keys=on")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// value reads one value of a database.
func value[T any](t *testing.T, database, query string) (v T) {
	t.Helper()
	driver := "sqlite3"
	if IsServer(database) {
		driver = "pgx"
	}
	db, err := sql.Open(driver, database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func toServer(t *testing.T, path, url string, o Options) Result {
	t.Helper()
	r, err := ToServer(t.Context(), path, url, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func toFile(t *testing.T, url, path string, o Options) Result {
	t.Helper()
	r, err := ToFile(t.Context(), url, path, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// schemaOf describes indexes, constraints, triggers and ids of a server, or the statements of a file.
func schemaOf(t *testing.T, database string) string {
	t.Helper()
	if !IsServer(database) {
		return value[string](t, database, `SELECT group_concat(type || ' ' || name || ': ' || coalesce(sql, ''), char(10))
			FROM (SELECT * FROM sqlite_schema ORDER BY type, name)`)
	}
	return value[string](t, database, `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT 'index ' || indexdef AS line FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT 'trigger ' || tgname || ' ' || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(generation_expression, '') FROM information_schema.columns
			WHERE table_schema = 'public') l`)
}

func TestCopy_EveryTable_ToAServerAndBack_IsTheSame(t *testing.T) {
	t.Parallel()
	path, server := newFile(t, testRows), newDatabase(t)
	there := toServer(t, path, server, Options{})
	for _, table := range there.Tables {
		if table.Rows == 0 && table.Name != "processes" {
			t.Errorf("table %s has no rows in testdata/rows.sql", table.Name)
		}
	}
	if there.Cleaned != 1 {
		t.Errorf("%d texts cleaned, want 1", there.Cleaned)
	}
	back := filepath.Join(t.TempDir(), "arizuko.db")
	again := toFile(t, server, back, Options{})
	if !slices.Equal(there.Tables, again.Tables) || again.Cleaned != 0 {
		t.Errorf("there %+v\nand back %+v", there, again)
	}
	empty := newDatabase(t)
	toServer(t, newFile(t, ""), empty, Options{})
	if got, want := schemaOf(t, server), schemaOf(t, empty); got != want {
		t.Errorf("the schema is %s\nwant %s", got, want)
	}
	if got, want := schemaOf(t, back), schemaOf(t, path); got != want {
		t.Errorf("the schema is %s\nwant %s", got, want)
	}
	numbers := map[string]string{
		back:   `SELECT (SELECT value FROM router_state WHERE key = 'decision_seq') || ' ' || (SELECT value FROM counters WHERE name = 'deliveries')`,
		server: `SELECT nextval('decision_numbers') - 1 || ' ' || nextval('delivery_numbers') - 1`,
	}
	last := value[string](t, path, numbers[back])
	for database, query := range numbers {
		if got := value[string](t, database, query); got != last {
			t.Errorf("the last numbers of a decision and a delivery in %s: %s, want %s", Name(database), got, last)
		}
	}
	for _, database := range []string{server, back} {
		for _, tc := range []struct {
			query string
			want  any
		}{
			{`SELECT content FROM messages WHERE id = 2`, "NUL  and �A bytes"},
			{`SELECT forwarded_from FROM messages WHERE id = 3`, `{"a":"\u0000"}`},
			{`SELECT platform || ' ' || chat_jid FROM messages WHERE id = 4`, "web web:main"},
			{`SELECT lane FROM turns WHERE id = 2`, "acme/eng t"},
			{`SELECT received_at FROM messages WHERE id = 2`, int64(9223372036854775807)},
			{`SELECT cost_usd FROM spend`, 0.30000000000000004},
			{`SELECT count(*) FROM counters WHERE name LIKE 'writer/%'`, int64(0)},
			{`SELECT value FROM counters WHERE name = 'media/20260101'`, int64(77)},
			{`SELECT count(*) FROM processes`, int64(0)},
			{`SELECT count(*) FROM leases`, int64(0)},
			{`SELECT count(*) + (SELECT indexed FROM search_state) FROM search_deleted`, int64(0)},
			{`SELECT version FROM schema_migrations`, int64(migrations.Latest())},
			{`INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('telegram:1', 'in', 1, 1) RETURNING id`, int64(9)},
			{`INSERT INTO processes (daemon, place, addr, since, until) VALUES ('x', '', '', 1, 2) RETURNING id`, int64(2)},
			{`INSERT INTO deliveries (message_id, part, state) VALUES (1, 0, 'queued') RETURNING 5`, int64(5)},
		} {
			if got := value[any](t, database, tc.query); got != tc.want {
				t.Errorf("%s in %s: %v, want %v", tc.query, Name(database), got, tc.want)
			}
		}
	}
}
