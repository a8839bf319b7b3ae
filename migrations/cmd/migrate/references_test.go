package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// linked is a history whose tables refer to each other: b to a, and c to b. The second step is a script.
func linked(second string) fstest.MapFS {
	files := history(1)
	files["0001_a.up.sql"] = file(`CREATE TABLE a (id INTEGER PRIMARY KEY) STRICT;
		CREATE TABLE b (id INTEGER, part INTEGER, a INTEGER NOT NULL REFERENCES a (id), other INTEGER REFERENCES a (id), PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID;
		CREATE TABLE c (id INTEGER PRIMARY KEY, b INTEGER NOT NULL, part INTEGER NOT NULL, FOREIGN KEY (b, part) REFERENCES b (id, part)) STRICT;
		CREATE TABLE schema_floor (floor INTEGER NOT NULL); INSERT INTO schema_floor VALUES (1);`)
	if second != "" {
		files["0002_b.up.sql"], files["0002_b.down.sql"] = file(second), file("SELECT 1;")
	}
	return files
}

func TestUp_ReferenceBrokenBefore_RefusedUntilTheRowsAreGone(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, linked(""), "schema version 1", "up")
	exec(t, data, `INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 0, 1, NULL), (2, 0, 9, NULL), (3, 0, 1, 9); INSERT INTO c VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0)`)
	after := linked("CREATE TABLE d (x);")
	const broken = `SELECT * FROM "b" AS t WHERE t."other" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "a" AS p WHERE p."id" = t."other")`
	for range 2 {
		_, err := call(data, after, "up")
		if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "1 rows of b refer to rows of a that are not there ("+broken+
			"); 1 rows of b refer to rows of a that are not there (") ||
			!strings.Contains(err.Error(), "correct or delete these rows") {
			t.Fatalf("got %v, want a refusal that names the rows", err)
		}
		mustCall(t, data, after, "1", "version")
	}
	exec(t, data, strings.Replace(broken, "SELECT *", "DELETE", 1)+`; DELETE FROM b WHERE id = 2; DELETE FROM c WHERE id > 1`)
	mustCall(t, data, after, "schema version 2", "up")
}

func TestUp_MigrationBreaksReference_ChangesNothing_EachTime(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, linked(""), "schema version 1", "up")
	exec(t, data, `INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 0, 1, NULL)`)
	for range 2 {
		_, err := call(data, linked("DELETE FROM a;"), "up")
		if exitCode(err) != exitFailure || !strings.Contains(err.Error(),
			"to version 2: 1 rows of b refer to rows of a that are not there (SELECT ") || !strings.Contains(err.Error(), ") afterwards") {
			t.Fatalf("got %v", err)
		}
		mustCall(t, data, linked(""), "1", "version")
	}
	mustCall(t, data, linked("DELETE FROM b; DELETE FROM a;"), "schema version 2", "up")
}

func TestUp_RowBreaksARule_ChangesNothing(t *testing.T) {
	t.Parallel()
	const rebuilt = "CREATE TABLE a_new (id INTEGER PRIMARY KEY, text %s) STRICT; INSERT INTO a_new SELECT id, text FROM a; DROP TABLE a; ALTER TABLE a_new RENAME TO a;"
	for script, want := range map[string]string{
		fmt.Sprintf(rebuilt, "TEXT CHECK (text <> 'second')"): "to version 2: CHECK constraint failed: text <> 'second'; nothing was changed",
		"CREATE UNIQUE INDEX a_text ON a (text);":             "to version 2: UNIQUE constraint failed: a.text; nothing was changed",
	} {
		data := t.TempDir()
		mustCall(t, data, history(1), "schema version 1", "up")
		exec(t, data, `DROP TABLE a; CREATE TABLE a (id INTEGER PRIMARY KEY, text TEXT) STRICT;
			INSERT INTO a VALUES (6, 'first'), (7, 'second'), (8, 'second')`)
		files := history(2)
		files["0002_b.up.sql"] = file(script)
		if _, err := call(data, files, "up"); exitCode(err) != exitFailure || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		mustCall(t, data, history(1), "1", "version")
	}
}

func TestUp_Receipt_SaysWhatBecameOfTheRows(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, linked(""), "schema version 1", "up")
	exec(t, data, `INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1, 0, 1, NULL); INSERT INTO c VALUES (1, 1, 0)`)
	var notes bytes.Buffer
	p := program{cfg: config{data: data}, files: linked("DROP TABLE c; DELETE FROM b; CREATE TABLE d (x);"), lockWait: time.Second, out: &bytes.Buffer{}, notes: &notes}
	if err := p.run([]string{"up"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"migrate: schema 1 -> 2 in ", "migrate: tables with another number of rows than before: b 1, now 0; c 1, now there is no such table\n",
		"migrate: unchanged: a 2, schema_floor 1\n", "migrate: disk: the database takes ",
		"stop the new daemons first; those of before may run, they work with both schemas):\n  ARIZUKO_DATA=" + data + " ", " down 1\n",
		"mv " + data + "/arizuko.db.schema-1 " + data + "/arizuko.db\n",
	} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("the notes are %q, want %q in them", notes.String(), want)
		}
	}
}
