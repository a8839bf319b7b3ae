package dbcopy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/testkit/need"
)

// Debian 12's sqlite3 is older than the SQLite of the programs, and stricter: its dumps and checks must be whole, too.
func TestDump_ByInstalledSQLite_LoadsAllRows(t *testing.T) {
	t.Parallel()
	need.Program(t, "sqlite3", "sqlite3")
	path := newFile(t, testRows+`
		INSERT INTO polls (message_id, folder, chat_jid, question, options, result, state, created_at, closed_at)
		VALUES (7, 'main', 'telegram:1', '?', '["a"]', '[1]', 'closed', 1, 2);
		UPDATE messages SET content = replace(content, char(0), '');`) // a dump cannot carry NUL characters
	loaded := filepath.Join(t.TempDir(), "loaded.db")
	run := func(stdin, database string, args ...string) string {
		t.Helper()
		cmd := exec.Command("sqlite3", append([]string{"-bail", database}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("sqlite3 %q: %v: %.500s", args, err, out)
		}
		return string(out)
	}
	run(run("", path, ".dump"), loaded)
	for _, database := range []string{path, loaded} {
		if got := run("", database, "PRAGMA integrity_check; PRAGMA foreign_key_check"); got != "ok\n" {
			t.Errorf("%s: %s", database, got)
		}
	}
	for table := range strings.FieldsSeq(value[string](t, path, `SELECT group_concat(name, ' ') FROM sqlite_schema
		WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'message_search%'`)) {
		list := "SELECT * FROM " + table
		if want, got := run("", path, "-quote", list), run("", loaded, "-quote", list); want == "" || got != want {
			t.Errorf("%s after the dump: %s\nwant %s", table, got, want)
		}
	}
}
