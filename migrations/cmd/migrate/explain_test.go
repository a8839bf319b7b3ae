package main

import (
	"bytes"
	"database/sql"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"arizuko/migrations"
	"arizuko/pkg/testkit/need"
)

// foreign is a data folder whose arizuko.db another program has made.
func foreign(t *testing.T, script string) (data string) {
	t.Helper()
	data = t.TempDir()
	db, err := sql.Open("sqlite3", filepath.Join(data, "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
	return data
}

// withFile is a data folder whose arizuko.db has some content.
func withFile(t *testing.T, content []byte) (data string) {
	t.Helper()
	data = t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "arizuko.db"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

// Each command refuses a file that is not a database of ours, names the remedy, and leaves it as it is.
func TestRun_FileIsNoDatabaseOfOurs_Untouched(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile(filepath.Join(oldInstance(t), "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(own)
	for i := len(own) / 4; i < len(own); i++ {
		damaged[i] = 'x'
	}
	const another, backup = `the table "notes": set ARIZUKO_DATA to the folder of the instance`, "put a backup in its place by `dashd restore --force`"
	for name, tc := range map[string]struct{ data, want string }{
		"of another program": {foreign(t, `CREATE TABLE notes (text)`), another},
		"of another program with migrations": {foreign(t, `CREATE TABLE schema_migrations (version, dirty);
			INSERT INTO schema_migrations VALUES (20, 0); CREATE TABLE notes (text)`), another},
		"a text":  {withFile(t, bytes.Repeat([]byte("a text "), 1000)), backup},
		"cut":     {withFile(t, own[:len(own)/2]), backup},
		"damaged": {withFile(t, damaged), backup},
	} {
		path, before := filepath.Join(tc.data, "arizuko.db"), sums(t, tc.data)
		for _, command := range []string{"up", "down", "rehearse", "version"} {
			out, err := call(tc.data, migrations.FS, command)
			if exitCode(err) != exitConfig || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %s: exit code %d, %v\n%s", name, command, exitCode(err), err, out)
			}
			if after := sums(t, tc.data); !maps.Equal(before, after) {
				t.Errorf("%s, %s: it changed files: %v, before %v", name, command, after, before)
			}
		}
	}
}

func TestRun_NoDatabase_SaysWhereItLooked(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "none")
	for _, command := range []string{"down", "rehearse"} {
		_, err := call(data, migrations.FS, command)
		if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "there is no database at "+data) || !strings.Contains(err.Error(), "set ARIZUKO_DATA") {
			t.Errorf("%s: %v", command, err)
		}
	}
	if !missing(data) {
		t.Error("it made the folder")
	}
}

// A copy of a data folder may lack run/, as operations.md says of a backup by hand.
func TestRun_WithoutFolderRun(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"rehearse", "down"} {
		data := oldInstance(t)
		if err := os.RemoveAll(filepath.Join(data, "run")); err != nil {
			t.Fatal(err)
		}
		if _, err := call(data, migrations.FS, command); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// A process that was killed before the database had a write-ahead log, as at its first start, leaves a journal.
func TestUp_JournalOfAKilledProcess_IsRolledBack(t *testing.T) {
	t.Parallel()
	live, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	mustCall(t, live, history(1), "schema version 1", "up")
	db, err := sql.Open("sqlite3", filepath.Join(live, "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; BEGIN; INSERT INTO a SELECT zeroblob(1 << 16) FROM (VALUES (1), (2), (3))`); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(killed, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	if missing(filepath.Join(killed, "arizuko.db-journal")) {
		t.Fatal("there is no journal")
	}
	mustCall(t, killed, history(2), "schema version 2", "up")
	if n := value[int](t, "sqlite3", filepath.Join(killed, "arizuko.db"), `SELECT count(*) FROM a`); n != 0 {
		t.Errorf("%d rows are there that were not committed", n)
	}
}

// On a disk that cannot be written nothing is changed, and the remedy is named.
func TestRun_DiskReadOnly_SaysWhatToDo(t *testing.T) {
	data := need.Disk(t, 64<<20)
	mustCall(t, data, historyOf(t, before()), "schema version "+strconv.Itoa(before()), "up")
	if out, err := osexec.Command("mount", "-o", "remount,ro", data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, command := range []string{"up", "down", "rehearse"} {
		_, err := call(data, migrations.FS, command)
		if exitCode(err) != exitFailure || !strings.Contains(err.Error(), "look whether its disk is mounted read-only") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
