package main

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"arizuko/migrations"
	"arizuko/pkg/testkit/executable"
)

// sums are the checksums of all files below a folder. The shared memory of SQLite and an empty log do not count.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(name, "-shm") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[name] = info.Mode().String()
		if d.Type().IsRegular() {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return err
			}
			if all[name] += fmt.Sprintf(" %x", sha256.Sum256(content)); len(content) == 0 && strings.HasSuffix(name, "-wal") {
				delete(all, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// withPrograms copies migrate into a folder of its own, beside a gated that is a script.
func withPrograms(t *testing.T, gated string) (migrate string) {
	t.Helper()
	bin := t.TempDir()
	migrate = filepath.Join(bin, "migrate")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	executable.Write(t, migrate, content)
	if gated != "" {
		executable.Script(t, filepath.Join(bin, "gated"), gated)
	}
	return migrate
}

// crashed leaves a data folder with a write-ahead log that has rows, as daemons leave it that were killed.
func crashed(t *testing.T) (data string) {
	t.Helper()
	live := oldInstance(t)
	db, err := openDB(filepath.Join(live, "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`INSERT INTO audit (at, who, what) VALUES (2, 'cli', 'in the log')`); err != nil {
		t.Fatal(err)
	}
	data = t.TempDir()
	if err := os.CopyFS(data, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(data, "arizuko.db-wal")); err != nil || info.Size() == 0 {
		t.Fatalf("no log: %v", err)
	}
	return data
}

func TestRehearse_PrintsReceipt_ChangesNothing(t *testing.T) {
	t.Parallel()
	const gated = `test "$1" = redecide || exit 9
echo "$* in $ARIZUKO_DATA, server <$ARIZUKO_DB>" > "$SEEN"
echo 'messages: 3 as stored, 1 different'`
	for name, data := range map[string]string{"stopped": oldInstance(t), "killed": crashed(t)} {
		seen := filepath.Join(t.TempDir(), "seen")
		before := sums(t, data)
		cmd := process(data, "rehearse", "--days", "3")
		cmd.Path = withPrograms(t, gated)
		out := must(t, with(cmd, "SEEN="+seen))
		if after := sums(t, data); !maps.Equal(before, after) {
			t.Errorf("%s: it changed files: %v, before %v", name, after, before)
		}
		for _, want := range []string{
			fmt.Sprintf("schema %d -> %d in ", migrations.Latest()-1, migrations.Latest()), "than before: none\n", "messages 3, ", "reminders 1, ",
			"disk: `migrate up` writes about ", "messages: 3 as stored, 1 different\n", "the instance was not changed; rehearsed in ",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if name == "killed" && !strings.Contains(out, "audit 2,") {
			t.Errorf("the row in the log is not counted:\n%s", out)
		}
		called, err := os.ReadFile(seen)
		if want := "redecide --days 3 --rows 10000 in " + data + "/run/rehearsal-"; err != nil || !strings.HasPrefix(string(called), want) ||
			!strings.Contains(string(called), "server <>") {
			t.Errorf("gated was called as %q, %v, want %q", called, err, want)
		}
	}
}

// A writer is not kept waiting, and rows that it writes after the copy are not in it.
func TestRehearse_WhileRowsAreWritten(t *testing.T) {
	t.Parallel()
	data := oldInstance(t)
	db, err := sql.Open("sqlite3", filepath.Join(data, "arizuko.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	done, rows := make(chan error), 0
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := db.Exec(`INSERT INTO audit (at, who, what) VALUES (2, 'cli', 'meanwhile')`); err != nil {
				done <- err
				return
			}
			rows++
		}
	}()
	out := must(t, process(data, "rehearse"))
	close(stop)
	if err := <-done; err != nil || rows == 0 {
		t.Errorf("%d rows were written, %v", rows, err)
	}
	if !strings.Contains(out, "the instance was not changed") {
		t.Error(out)
	}
	if n := value[int](t, "sqlite3", filepath.Join(data, "arizuko.db"), `SELECT count(*) FROM audit`); n != rows+1 {
		t.Errorf("%d rows, want %d", n, rows+1)
	}
}

func TestRehearse_Keep_AndWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	data := oldInstance(t)
	folders := func() []string {
		t.Helper()
		names, err := fs.Glob(os.DirFS(filepath.Join(data, "run")), "rehearsal-*")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	killed := process(data, "rehearse")
	killed.Path = withPrograms(t, `kill -9 $PPID`)
	if out, err := killed.CombinedOutput(); err == nil || killed.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	if got := folders(); len(got) != 1 {
		t.Errorf("a killed one leaves %q", got)
	}
	out := must(t, process(data, "rehearse", "--keep"))
	got := folders()
	if len(got) != 1 || !strings.Contains(out, "the copy is kept in "+filepath.Join(data, "run", got[0])) {
		t.Fatalf("kept are %q: %s", got, out)
	}
	kept := filepath.Join(data, "run", got[0])
	if v, err := call(kept, migrations.FS, "version"); err != nil || v != strconv.Itoa(migrations.Latest()) {
		t.Errorf("the copy has schema %s, %v", v, err)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	must(t, process(data, "rehearse"))
	if got := folders(); len(got) != 0 {
		t.Errorf("left are %q", got)
	}
}

func TestRehearse_WhatUpWouldRefuse_IsNamed(t *testing.T) {
	t.Parallel()
	broken := oldInstance(t)
	exec(t, broken, `UPDATE messages SET derived_from = 77 WHERE id = 3`)
	for name, tc := range map[string]struct {
		data, gated string
		args        []string
		env         string
		code        int
		want        string
	}{
		"broken reference": {broken, "", nil, "", exitConfig,
			"`migrate up` would fail: 1 rows of messages refer to rows of messages that are not there (SELECT * FROM \"messages\" AS t WHERE t.\"derived_from\" IS NOT NULL"},
		"no database":  {t.TempDir(), "", nil, "", exitConfig, "there is no database"},
		"a server":     {t.TempDir(), "", nil, "ARIZUKO_DB=postgres://u:s3cret@127.0.0.1:1/x", exitConfig, "this one is on a server: copy it there"},
		"usage":        {broken, "", []string{"--days", "0"}, "", exitConfig, "usage: migrate rehearse"},
		"unknown flag": {broken, "", []string{"--dry"}, "", exitConfig, "usage: migrate rehearse"},
		"gated fails": {oldInstance(t), "echo gated: nonsense >&2; exit 78", nil, "", exitFailure,
			"decisions are not compared: exit status 78: gated: nonsense"},
	} {
		cmd := with(process(tc.data, append([]string{"rehearse"}, tc.args...)...), tc.env)
		cmd.Path = withPrograms(t, tc.gated)
		out, err := cmd.CombinedOutput()
		var exit *osexec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != tc.code || !strings.Contains(string(out), tc.want) || strings.Contains(string(out), "s3cret") {
			t.Errorf("%s: %v: %s\nwant exit code %d and %q", name, err, out, tc.code, tc.want)
		}
	}
}
