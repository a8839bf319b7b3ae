package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"arizuko/migrations"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/testkit/need"
)

func file(sql string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(sql)} }

// history returns n steps that create one table each; the first also creates the floor.
func history(n int) fstest.MapFS {
	all := []string{"a", "b", "c"}
	files := fstest.MapFS{}
	for i, table := range all[:n] {
		number := "000" + string(rune('1'+i)) + "_" + table
		files[number+".up.sql"] = file("CREATE TABLE " + table + " (x); CREATE INDEX " + table + "_x ON " + table + "(x);")
		files[number+".down.sql"] = file("DROP TABLE " + table + ";")
	}
	files["0001_a.up.sql"] = file("CREATE TABLE a (x); CREATE TABLE schema_floor (floor INTEGER NOT NULL); INSERT INTO schema_floor VALUES (1);")
	files["0001_a.down.sql"] = file("DROP TABLE a; DROP TABLE schema_floor;")
	return files
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// call runs migrate in the data folder and returns its output.
func call(data string, files fs.FS, args ...string) (string, error) {
	var out bytes.Buffer
	p := program{cfg: config{data: data}, files: files, lockWait: 10 * time.Second, out: &out}
	err := p.run(args)
	return strings.TrimSpace(out.String()), err
}

func mustCall(t *testing.T, data string, files fs.FS, want string, args ...string) {
	t.Helper()
	if got, err := call(data, files, args...); err != nil || got != want {
		t.Fatalf("migrate %s: %q, %v; want %q", strings.Join(args, " "), got, err, want)
	}
}

func exec(t *testing.T, data, sql string) {
	t.Helper()
	db, err := openDB(filepath.Join(data, "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

func TestProgramVersion(t *testing.T) {
	got, err := call(t.TempDir(), migrations.FS, "--version")
	want := fmt.Sprintf("migrate %s, schema %d", buildinfo.Version(), migrations.Latest())
	if err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// Nothing can be made on the file system, so a migration that is not refused fails with its first folder.
func TestUp_FileSystemCannotCarryTheDatabase_RefusedUnlessOverridden(t *testing.T) {
	data := filepath.Join(need.FUSE(t), "data")
	_, err := call(data, history(1), "up")
	if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "is on FUSE") || !strings.Contains(err.Error(), "ARIZUKO_UNSAFE_FS=1") {
		t.Errorf("got %v, want a refusal", err)
	}
	for name, cfg := range map[string]config{"overridden": {data: data, unsafeFS: true}, "with a server": {data: data, server: "postgres://127.0.0.1/x"}} {
		p := program{cfg: cfg, files: history(1), out: io.Discard}
		if err := p.run([]string{"up"}); err == nil || exitCode(err) == exitConfig && strings.Contains(err.Error(), "FUSE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUpDownVersion(t *testing.T) {
	data := filepath.Join(t.TempDir(), "odd ?#% name", "data")
	mustCall(t, data, history(3), "none", "version")
	mustCall(t, data, history(3), usage, "--help")
	mustCall(t, data, history(3), usage, "up", "-h")
	if !missing(data) {
		t.Error("version made the data folder")
	}
	mustCall(t, data, history(2), "schema version 2", "up")
	mustCall(t, data, history(2), "schema version 2, nothing to do", "up")
	mustCall(t, data, history(3), "schema version 3", "up")
	mustCall(t, data, history(3), "3", "version")
	mustCall(t, data, history(3), "schema version 2", "down")
	mustCall(t, data, history(3), "schema version none", "down", "2")
	mustCall(t, data, history(3), "none", "version")
	mustCall(t, data, history(3), "schema version 3", "up")
}

func TestUpDownUp_RealMigrations(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		if _, err := call(data, migrations.FS, "up"); err != nil {
			t.Fatal(err)
		}
		for range migrations.Latest() {
			if _, err := call(data, migrations.FS, "down"); err != nil {
				t.Fatal(err)
			}
		}
		mustCall(t, data, migrations.FS, "none", "version")
	}
}

func TestUp_MakesTheDataFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	mustCall(t, data, history(1), "schema version 1", "up")
	for name, want := range map[string]fs.FileMode{
		"": 0o700, "run": 0o700, "groups": 0o700, "media": 0o700, "logs": 0o700, "secret": 0o600, "arizuko.db": 0o600,
	} {
		info, err := os.Stat(filepath.Join(data, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	secret, err := os.ReadFile(filepath.Join(data, "secret"))
	if err != nil || len(secret) != 65 || secret[64] != '\n' {
		t.Errorf("secret has %d bytes, %v", len(secret), err)
	}
	mustCall(t, data, history(1), "schema version 1, nothing to do", "up")
	again, err := os.ReadFile(filepath.Join(data, "secret"))
	if err != nil || !bytes.Equal(again, secret) {
		t.Errorf("the secret changed: %v", err)
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".secret") {
			t.Errorf("%s is left", entry.Name())
		}
	}
}

func TestUp_SecretInEnvironment_MakesNoFile(t *testing.T) {
	for _, name := range []string{"ARIZUKO_SECRET", "ARIZUKO_SECRET_FILE"} {
		cfg, err := loadConfig([]string{"ARIZUKO_DATA=" + t.TempDir(), name + "=x"})
		if err != nil {
			t.Fatal(err)
		}
		p := program{cfg: cfg, files: history(1), out: &bytes.Buffer{}}
		if err := p.run([]string{"up"}); err != nil {
			t.Fatal(err)
		}
		if !missing(cfg.secretPath()) {
			t.Errorf("%s: a secret was made", name)
		}
	}
	if cfg, err := loadConfig([]string{"ARIZUKO_DATA=", "ARIZUKO_SECRET=", "ARIZUKO_DB="}); err != nil || cfg != (config{data: "./data"}) {
		t.Errorf("defaults are %+v", cfg)
	}
}

func TestUp_MigrationFails_ChangesNothing(t *testing.T) {
	data := t.TempDir()
	broken := history(3)
	broken["0003_c.up.sql"] = file("CREATE TABLE c (x); INSERT INTO nowhere VALUES (1);")
	_, err := call(data, broken, "up")
	if exitCode(err) != exitFailure || !strings.Contains(err.Error(), "to version 3: no such table: nowhere") {
		t.Fatalf("got %v", err)
	}
	mustCall(t, data, broken, "none", "version")
	mustCall(t, data, history(3), "schema version 3", "up")
}

func TestUp_Upgrade_KeepsOneCopyOfTheDatabase(t *testing.T) {
	data := filepath.Join(t.TempDir(), "a[b*") // no pattern
	copies := func() string {
		names, err := fs.Glob(os.DirFS(data), "arizuko.db.schema-*")
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			names[i] = strings.TrimPrefix(name, "arizuko.db.")
		}
		return strings.Join(names, " ")
	}
	mustCall(t, data, history(1), "schema version 1", "up")
	if got := copies(); got != "" {
		t.Errorf("a new database has copies: %s", got)
	}
	exec(t, data, `INSERT INTO a VALUES (7)`)
	mustCall(t, data, history(2), "schema version 2", "up")
	mustCall(t, data, history(2), "schema version 2, nothing to do", "up")
	path := filepath.Join(data, "arizuko.db.schema-1")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	kept, err := openDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	var x int
	if err := kept.QueryRow(`SELECT x FROM a`).Scan(&x); err != nil || x != 7 {
		t.Errorf("the copy has %d, %v", x, err)
	}
	if v, err := (config{}).readVersion(kept); err != nil || v.number != 1 {
		t.Errorf("the copy has version %s, %v", v, err)
	}
	kept.Close()
	mustCall(t, data, history(3), "schema version 3", "up")
	if got := copies(); got != "schema-2" {
		t.Errorf("copies: %s", got)
	}
	mustCall(t, data, history(3), "schema version 1", "down", "2")
	if got := copies(); got != "schema-3" {
		t.Errorf("copies: %s", got)
	}
}

func TestUp_RestoreUnderWay_Refused(t *testing.T) {
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "restoring"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := call(data, history(1), "up")
	if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "run `dashd restore` again") {
		t.Errorf("got %v", err)
	}
	if !missing(filepath.Join(data, "arizuko.db")) {
		t.Error("it made a database")
	}
}

func TestUp_DirtyDatabase_IsExplained(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, history(2), "schema version 2", "up")
	exec(t, data, `UPDATE schema_migrations SET dirty = 1`)
	mustCall(t, data, history(2), "2 dirty", "version")
	for _, args := range [][]string{{"up"}, {"down"}} {
		_, err := call(data, history(2), args...)
		if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "SET version = 2, dirty = 0 if they are, version = 1 if") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestUp_NewerDatabase_IsLeftAsItIs(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, history(3), "schema version 3", "up")
	mustCall(t, data, history(2), "schema version 3, nothing to do", "up")
	if _, err := call(data, history(2), "down"); exitCode(err) != exitConfig {
		t.Errorf("down: %v", err)
	}
	exec(t, data, `UPDATE schema_floor SET floor = 3`)
	if _, err := call(data, history(2), "up"); exitCode(err) != exitConfig || !strings.Contains(err.Error(), "no program older than 3") {
		t.Errorf("up below the floor: %v", err)
	}
}

func TestRun_Refuses(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, history(2), "schema version 2", "up")
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data string
		args []string
		want string
	}{
		"no command":      {data, nil, "usage"},
		"unknown":         {data, []string{"sideways"}, "usage"},
		"up with number":  {data, []string{"up", "2"}, "usage"},
		"down nothing":    {data, []string{"down", "0"}, "want a number"},
		"down negative":   {data, []string{"down", "-1"}, "want a number"},
		"down word":       {data, []string{"down", "all"}, "want a number"},
		"down too far":    {data, []string{"down", "3"}, "cannot go 3 steps back"},
		"down no data":    {filepath.Join(data, "none"), []string{"down"}, "there is no database"},
		"data is a file":  {blocked, []string{"up"}, "not a directory"},
		"secret is empty": {empty, []string{"up"}, "is empty"},
	} {
		_, err := call(tc.data, history(2), tc.args...)
		if exitCode(err) != exitConfig || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: exit %d, %v", name, exitCode(err), err)
		}
	}
	mustCall(t, data, history(2), "2", "version")
}

func TestUp_LockHeld_TimesOut(t *testing.T) {
	data := t.TempDir()
	mustCall(t, data, history(2), "schema version 2", "up")
	cfg := config{data: data}
	held, err := lockfile.TryLock(cfg.lockPath())
	if err != nil {
		t.Fatal(err)
	}
	p := program{cfg: cfg, files: history(2), lockWait: 0, out: &bytes.Buffer{}}
	for _, command := range []string{"up", "down"} {
		if err := p.run([]string{command}); !errors.Is(err, lockfile.ErrHeld) || exitCode(err) != exitLocked {
			t.Errorf("%s: %v", command, err)
		}
	}
	mustCall(t, data, history(2), "2", "version")
	held.Close()
	mustCall(t, data, history(2), "schema version 2, nothing to do", "up")
}
