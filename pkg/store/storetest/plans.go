package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"arizuko/pkg/store"
)

var (
	statementName = regexp.MustCompile(`^(query|insert|update|upsert|put|add|bump|delete)[A-Z]`)
	// A limit that is a parameter alone: SQLite would compile the statement at every call.
	bareLimit = regexp.MustCompile(`LIMIT \?\d*(\s|\)|$)`)
	growing   = regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE)\s+(messages|deliveries|turns|runs|session_log|system_messages)\b`)
)

// crossJoin finds the word after a table that is joined.
var crossJoin = regexp.MustCompile(`CROSS JOIN [^()]*?\b(ON|WHERE|JOIN|GROUP|ORDER|LIMIT|$)`)

// checkText fails for a statement that SQLite takes, and that would be slow or wrong.
func checkText(t *testing.T, name, text string) {
	t.Helper()
	if bareLimit.MatchString(text) {
		t.Errorf("%s: the parameter of LIMIT is alone: write ?+0", name)
	}
	for _, join := range crossJoin.FindAllStringSubmatch(text, -1) {
		if join[1] != "ON" { // it is only a hint for SQLite, and a plain JOIN on a server
			t.Errorf("%s: CROSS JOIN without ON: a server refuses it", name)
		}
	}
}

// CheckPlans compares the query plans of a package's statements with the expected ones: plans has for each name the
// statement and SQLite's plan, a step per line. It fails for a statement in a file queries*.go of the package that
// plans does not have, and for one on a growing table that is in another file. On a server, no statement may read a
// table from one end to the other unless SQLite does the same.
func CheckPlans(t *testing.T, plans map[string][2]string) {
	t.Helper()
	for _, name := range statements(t) {
		if _, known := plans[name]; !known && !strings.Contains(name, "Postgres") {
			t.Errorf("no expected plan for %s", name)
		}
	}
	db, err := sql.Open("sqlite3", File(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, want := range plans {
		checkText(t, name, want[0])
		if got := plan(t, db, want[0]); got != want[1] {
			t.Errorf("%s: the plan is\n%s\nwant\n%s", name, got, want[1])
		}
	}
	if Server() != "" {
		checkServerPlans(t, plans)
	}
}

// statements lists the constants in the package's files queries*.go that are statements, not parts of some.
func statements(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasSuffix(name, "_test.go"):
			continue
		case !strings.HasPrefix(name, "queries"):
			if use := growing.Find(source); use != nil {
				t.Errorf("%s: %q belongs in a file queries*.go", name, use)
			}
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && statementName.MatchString(spec.Names[0].Name) {
				names = append(names, spec.Names[0].Name)
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatal("no statements in queries*.go")
	}
	return names
}

// plan returns SQLite's query plan, one step per line.
func plan(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	query = strings.ReplaceAll(query, "clock_ms()", "1")
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var args []any
	err = conn.Raw(func(c any) error {
		stmt, err := c.(driver.Conn).Prepare(query)
		if err != nil {
			return err
		}
		args = make([]any, stmt.NumInput())
		return stmt.Close()
	})
	if err != nil {
		t.Fatal(query, err)
	}
	rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// checkServerPlans has a server plan the statements, with 5,000 rows in each table and 50,000 messages, none waiting,
// without knowing their parameters, as after a while in a daemon. None of them may read a table, or an index of all its
// rows, from one end to the other, unless SQLite does the same. The indexes of rows that wait, such as messages_outbox,
// are short.
func checkServerPlans(t *testing.T, plans map[string][2]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), Path(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	fillTables(t, conn)
	short := collectTexts(t, conn, `SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indpred IS NOT NULL`)

	for name, statement := range plans {
		if strings.Contains(statement[0], "sqlite_sequence") || strings.Contains(statement[0], "message_search") {
			continue // each engine has its own
		}
		for _, read := range wholeReads(explain(t, conn, statement[0])) {
			if !slices.Contains(short, read) && !scansTable.MatchString(statement[1]) && !wholeReadsOnAServer[name] {
				t.Errorf("%s reads %s as a whole", name, read)
			}
		}
	}
	if reads := wholeReads(explain(t, conn, `SELECT 1 FROM messages WHERE content = 'x'`)); !slices.Equal(reads, []string{"messages"}) {
		t.Errorf("a statement without an index reads %q as a whole", reads)
	}
}

// wholeReadsOnAServer are the exceptions. SQLite's plans read most of them as a whole, too.
var wholeReadsOnAServer = map[string]bool{
	// The databases of a server.
	"queryRunning": true,
	// Tables of a few rows.
	"Daemons":               true,
	"Groups":                true,
	"ReadSchema":            true,
	"SchemaProblem":         true,
	"schemaReason":          true,
	"schemaReason 2":        true,
	"FenceExpired":          true,
	"Join":                  true,
	"queryAliases":          true,
	"queryCountPushDevices": true,
	"queryWebChats":         true,
	"aliasesExist":          true,
	"BroadcastOf":           true,
	"ExpiredProcesses":      true,
	"FailingGroups":         true,
	"FindQueued":            true,
	"Processes":             true,
	"PutRule":               true,
	"queryPushDevices":      true,
	"querySearchDeleted":    true,
	"querySearchState":      true,
	"Stops":                 true,
	"updateSearchState":     true,
	// The first rows of an index: its limit ends it.
	"PurgeAudit":        true,
	"queryLastRuntimes": true,
	"queryOldestAudit":  true,
	// A page of the rows that have ended: the limit, which the server does not know, could be a tenth of all.
	"DeleteEndedContextObjects": true,
	"DeleteReceiptsBefore":      true,
	"PurgeRequests":             true,
	// The newest rows, which the server sees from the parameters: without them it could be a third of all.
	"queryDeliveryChanges": true,
	"queryGroupDollars":    true,
	// All rows, once: for a page of the dashboard, for the few chats that are being moved.
	"queryDirectChat": true,
	"FoldersEver":     true,
	"queryUnmoved":    true,
}

// fillTables fills all tables of a migrated database with rows that only have the right types.
func fillTables(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec := func(statements ...string) {
		for _, s := range statements {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	exec(`SET session_replication_role = replica`) // no triggers, no foreign keys
	exec(`DELETE FROM egress_rules`)               // those that the schema comes with
	exec(collectTexts(t, conn, `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
		FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace`)...)
	exec(collectTexts(t, conn, `SELECT format('INSERT INTO %I (%s) SELECT %s FROM generate_series(1, %s) g', table_name,
			string_agg(format('%I', column_name), ', '),
			string_agg(CASE data_type WHEN 'text' THEN '''{"v": ' || '"'' || g || ''"}''' ELSE 'g' END, ', '), CASE WHEN table_name IN ('messages', 'deliveries') THEN 50000 ELSE 5000 END)
		FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT IN ('schema_migrations', 'message_search', 'search_state')
			AND is_generated = 'NEVER' AND data_type IN ('text', 'bigint', 'double precision') GROUP BY table_name`)...)
	exec(`ANALYZE`, `SET plan_cache_mode = force_generic_plan`)
}

func collectTexts(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return texts
}

// explain returns the plan of a statement whose parameters are not known.
func explain(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	const name = "planned"
	prepared, err := conn.Prepare(t.Context(), name, store.Translate(query))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	args := strings.TrimSuffix(strings.Repeat("NULL, ", len(prepared.ParamOIDs)), ", ")
	if args != "" {
		args = "(" + args + ")"
	}
	plan := collectTexts(t, conn, "EXPLAIN EXECUTE "+name+args)
	if err := conn.Deallocate(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return plan
}

var (
	indexScan = regexp.MustCompile(`Index (?:Only )?Scan (?:Backward )?using (\S+) on `)
	seqScan   = regexp.MustCompile(`Seq Scan on (\S+)`)
	// scansTable matches SQLite's plan of a table that is read as a whole.
	scansTable = regexp.MustCompile(`(?m)^SCAN \S+ USING`)
)

// wholeReads are the tables and indexes that a plan reads from one end to the other.
func wholeReads(plan []string) (all []string) {
	for i, line := range plan {
		if m := seqScan.FindStringSubmatch(line); m != nil {
			all = append(all, m[1])
		}
		if m := indexScan.FindStringSubmatch(line); m != nil && (i+1 == len(plan) || !strings.Contains(plan[i+1], "Index Cond")) {
			all = append(all, m[1])
		}
	}
	return all
}
