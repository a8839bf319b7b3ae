package dbcopy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"arizuko/migrations"
)

var errEnded = errors.New("ended here")

// endAt ends a copy at a point.
func endAt(point Point) Options {
	return Options{At: func(p Point) error {
		if p == point {
			return errEnded
		}
		return nil
	}}
}

const (
	tablesOfServer = `SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
	countMarks     = `SELECT count(*) FROM cursors WHERE daemon = 'migrate'`
)

// points are all points.
func points() []Point { return []Point{Begun, Prepared, Loaded, Verified, Marked, Committed} }

// After each point the target has no tables, or all rows; and daemons may start on one of both at most.
func TestToServer_EndedAnywhere_RepeatCompletes(t *testing.T) {
	t.Parallel()
	for _, point := range points() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			path, url := newFile(t, testRows), newDatabase(t)
			if _, err := ToServer(t.Context(), path, url, endAt(point)); !errors.Is(err, errEnded) {
				t.Fatal(err)
			}
			committed := point == Committed
			if n := value[int64](t, url, tablesOfServer); (n > 0) != committed {
				t.Errorf("the target has %d tables", n)
			}
			marked := value[int64](t, path, countMarks) > 0
			if marked != (point == Marked || committed) {
				t.Errorf("marked: %v", marked)
			}
			r := toServer(t, path, url, Options{})
			if r.Already != committed || r.Rows() < 50 || value[int64](t, path, countMarks) != 1 || value[int64](t, url, countMarks) != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestToFile_EndedAnywhere_RepeatCompletes(t *testing.T) {
	t.Parallel()
	for _, former := range []string{"none", "moved"} {
		for _, point := range points() {
			t.Run(former+" "+string(point), func(t *testing.T) {
				t.Parallel()
				path, url := newFile(t, testRows), newDatabase(t)
				toServer(t, path, url, Options{})
				execServer(t, url, `UPDATE messages SET content = 'on the server' WHERE id = 1`)
				if former == "none" {
					path = filepath.Join(t.TempDir(), "arizuko.db")
				}
				if _, err := ToFile(t.Context(), url, path, endAt(point)); !errors.Is(err, errEnded) {
					t.Fatal(err)
				}
				committed := point == Committed
				if former == "none" {
					if _, err := os.Stat(path); (err == nil) != committed {
						t.Errorf("the file: %v", err)
					}
				} else if marks := value[int64](t, path, countMarks); (marks == 0) != committed {
					t.Errorf("the file has %d marks", marks)
				}
				if marks := value[int64](t, url, countMarks); (marks == 1) != (committed || point == Marked) {
					t.Errorf("the server has %d marks", marks)
				}
				r := toFile(t, url, path, Options{})
				if r.Already != committed || value[string](t, path, `SELECT content FROM messages WHERE id = 1`) != "on the server" {
					t.Errorf("%+v", r)
				}
				if (r.Aside != "") != (former == "moved" && !committed) {
					t.Errorf("moved aside: %q", r.Aside)
				}
				if left, err := fs.Glob(os.DirFS(filepath.Dir(path)), "*"+partial+"*"); err != nil || left != nil {
					t.Errorf("it leaves %q, %v", left, err)
				}
			})
		}
	}
}

func TestTransfer_TargetChangesAValue_FailsNamesTheTable(t *testing.T) {
	t.Parallel()
	from, err := openFile(t.Context(), newFile(t, testRows))
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	for what, change := range map[string]string{"a number": "at = at + 1", "a text": "detail = detail || ' '", "nothing": "at = at"} {
		to, err := makeFile(t.Context(), filepath.Join(t.TempDir(), "to.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer to.close()
		_, err = to.prepare(t.Context(), from)
		if err == nil {
			err = to.run(t.Context(), "CREATE TRIGGER losing AFTER INSERT ON audit BEGIN UPDATE audit SET "+change+"; END")
		}
		if err != nil {
			t.Fatal(err)
		}
		tables, err := to.tables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = Options{}.transfer(t.Context(), from, to, tables)
		if what == "nothing" {
			if err != nil {
				t.Error(err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "verify table audit") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSum_MissingDoubledOrOtherRow_Differs(t *testing.T) {
	t.Parallel()
	sumOf := func(all ...[]any) string {
		var s sum
		for _, row := range all {
			if err := s.add(row); err != nil {
				t.Fatal(err)
			}
		}
		return s.String()
	}
	a, b := []any{int64(1), "x", nil}, []any{int64(2), "", 1.0}
	if sumOf(a, b) != sumOf(b, a) {
		t.Error("the order counts")
	}
	seen := map[string]string{}
	for name, got := range map[string]string{
		"none": sumOf(), "a": sumOf(a), "b": sumOf(b), "both": sumOf(a, b), "a twice": sumOf(a, a), "a four times": sumOf(a, a, a, a),
		"nil for ''": sumOf([]any{int64(2), nil, 1.0}), "1 for 1.0": sumOf([]any{int64(2), "", int64(1)}),
		"texts cut elsewhere": sumOf([]any{"ab", "c"}), "texts": sumOf([]any{"a", "bc"}),
	} {
		if other := seen[got]; other != "" {
			t.Errorf("%s and %s have the same sum", name, other)
		}
		seen[got] = name
	}
	if err := new(sum).add([]any{true}); err == nil {
		t.Error("a value of another type is accepted")
	}
}

func TestToServer_UnusableSource_IsRefusedAndNothingChanges(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	for change, want := range map[string]string{
		`UPDATE schema_migrations SET version = version - 1`:                                       "run `migrate up` first",
		`UPDATE schema_migrations SET version = version + 1`:                                       "use the version of migrate that migrated it",
		`UPDATE schema_migrations SET dirty = true`:                                                "has failed",
		`DROP TABLE schema_migrations`:                                                             "is not migrated",
		`INSERT INTO cursors VALUES ('migrate', 'moved', 'postgres://db/other at 2026-01-02')`:     "was copied to postgres://db/other at 2026-01-02",
		`PRAGMA foreign_keys = off; UPDATE reminder_slots SET message_id = 999 WHERE slot = 60000`: "reminder_slots",
	} {
		path := newFile(t, testRows)
		execFile(t, path, change)
		_, err := ToServer(t.Context(), path, url, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrRefused) != (want != "reminder_slots") {
			t.Errorf("%s: %v", change, err)
		}
		if n := value[int64](t, url, tablesOfServer); n > 0 {
			t.Fatalf("%s: the target has %d tables", change, n)
		}
		if want == "reminder_slots" && value[int64](t, path, countMarks) != 0 {
			t.Errorf("the source is marked after %v", err)
		}
	}
	if _, err := ToServer(t.Context(), filepath.Join(t.TempDir(), "none"), url, Options{}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

func TestToServer_UnusableTarget_IsRefused(t *testing.T) {
	t.Parallel()
	path := newFile(t, testRows)
	for what, tc := range map[string]struct {
		prepare string
		want    string
		err     error
	}{
		"rows":              {`DELETE FROM audit; INSERT INTO audit (at, who, what) VALUES (1, 'x', 'y'), (1, 'x', 'z')`, "has rows already", ErrRefused},
		"another schema":    {`UPDATE schema_migrations SET version = 14`, "has schema 14", ErrRefused},
		"moved":             {`INSERT INTO cursors VALUES ('migrate', 'moved', 'h:/data/arizuko.db at noon')`, "was copied to h:/data/arizuko.db at noon, its rows are old", ErrRefused},
		"of other use":      {`DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE shop (id int)`, "tables of another program", ErrRefused},
		"a process's lease": {`INSERT INTO processes (daemon, place, addr, since, until) VALUES ('gated', 'host:/data', '', 1, 9e12)`, "gated on host:/data", ErrRunning},
	} {
		url := newDatabase(t)
		toServer(t, newFile(t, ""), url, Options{})
		execServer(t, url, tc.prepare)
		before := value[int64](t, url, tablesOfServer)
		_, err := ToServer(t.Context(), path, url, Options{})
		if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", what, err)
		}
		if after := value[int64](t, url, tablesOfServer); after != before || value[int64](t, path, countMarks) != 0 {
			t.Errorf("%s: %d tables, %d before; %d marks", what, after, before, value[int64](t, path, countMarks))
		}
	}
}

func TestToServer_MigratedEmptyTarget_IsFilled(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	steps, err := migrations.Postgres()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		execServer(t, url, step.SQL)
	}
	execServer(t, url, `CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);
		INSERT INTO schema_migrations VALUES (`+strconv.Itoa(migrations.Latest())+`, false)`)
	path := newFile(t, testRows)
	toServer(t, path, url, Options{})
	if n := value[int64](t, url, `SELECT count(*) FROM messages`); n != 7 {
		t.Errorf("%d messages", n)
	}
}

// A daemon that connects while rows are copied keeps the copy from its end.
func TestToServer_DaemonConnectsMeanwhile_NothingIsCopied(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, testRows), newDatabase(t)
	o := Options{At: func(p Point) error {
		if p != Loaded {
			return nil
		}
		conn, err := pgx.Connect(t.Context(), url+"&application_name=arizuko")
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return err
	}}
	_, err := ToServer(t.Context(), path, url, o)
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), "1 connections of daemons") {
		t.Error(err)
	}
	if value[int64](t, path, countMarks) != 0 || value[int64](t, url, tablesOfServer) != 0 {
		t.Error("something was changed")
	}
}

func TestToFile_FileWithRows_IsRefused(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, testRows), newDatabase(t)
	toServer(t, path, url, Options{})
	other := newFile(t, `INSERT INTO audit (at, who, what) VALUES (1, 'x', 'y')`)
	if _, err := ToFile(t.Context(), url, other, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "has rows already") {
		t.Error(err)
	}
	log := filepath.Join(t.TempDir(), "arizuko.db")
	if err := os.WriteFile(log+"-wal", []byte("of another file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ToFile(t.Context(), url, log, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "arizuko.db-wal is there") {
		t.Error(err)
	}
	if marks := value[int64](t, url, countMarks); marks != 0 {
		t.Error("the server is marked")
	}
	empty := newFile(t, "")
	if r := toFile(t, url, empty, Options{}); r.Aside == "" {
		t.Errorf("%+v", r)
	}
}

func TestSnapshot_WhileOthersWrite_IsOfOneMoment(t *testing.T) {
	t.Parallel()
	path, url := newFile(t, testRows), newDatabase(t)
	toServer(t, path, url, Options{})
	to := filepath.Join(t.TempDir(), "snapshot.db")
	r, err := Snapshot(t.Context(), url, to, Options{At: func(p Point) error {
		if p == Prepared {
			execServer(t, url, `INSERT INTO audit (at, who, what) VALUES (1, 'x', 'later'); DELETE FROM spend`)
		}
		return nil
	}})
	// The snapshot is taken before the file is made.
	if err != nil || value[int64](t, to, `SELECT count(*) FROM audit`) != 1 || value[int64](t, to, `SELECT count(*) FROM spend`) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if marks := value[int64](t, url, countMarks); marks != 0 {
		t.Error("the server is marked")
	}
}

func TestReopen_MovedDatabase_IsUsableAgain(t *testing.T) {
	t.Parallel()
	path := newFile(t, testRows)
	execFile(t, path, `INSERT INTO cursors VALUES ('migrate', 'moved', 'there')`)
	for _, want := range []string{"there", ""} {
		if moved, err := Reopen(t.Context(), path); moved != want || err != nil {
			t.Errorf("%q, %v; want %q", moved, err, want)
		}
	}
	if _, err := Reopen(t.Context(), path+"-none"); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	url := newDatabase(t)
	toServer(t, path, url, Options{})
	toFile(t, url, filepath.Join(t.TempDir(), "arizuko.db"), Options{})
	if moved, err := Reopen(t.Context(), url); !strings.Contains(moved, "/arizuko.db at 20") || err != nil {
		t.Errorf("%q, %v", moved, err)
	}
}

func TestName_PasswordsAndOptions_AreLeftOut(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://arizuko:s%40cret@db.example:5433/arizuko?sslmode=require": "postgres://arizuko@db.example:5433/arizuko",
		"postgres://db/arizuko?password=secret&sslpassword=secret":            "postgres://db/arizuko",
		"postgres://arizuko@/arizuko?host=/run/postgresql":                    "postgres://arizuko@/arizuko?host=%2Frun%2Fpostgresql",
		"postgres://a:secret@db1,db2/arizuko?target_session_attrs=read-write": "postgres://a@db1,db2/arizuko",
		"postgres://a:se cret@db/x":                                           "the server",
	} {
		if got := Name(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
