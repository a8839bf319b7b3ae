package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"arizuko/migrations"
	"arizuko/migrations/dbcopy"
	"arizuko/pkg/testkit/need"
)

// before is the schema of the version before this one.
func before() int { return migrations.Latest() - 1 }

// historyOf has the migrations of an older version.
func historyOf(t *testing.T, last int) fstest.MapFS { return historyIn(t, migrations.FS, last) }

func historyIn(t *testing.T, all fs.ReadFileFS, last int) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(all, "*.sql")
	for _, name := range names {
		if number, _ := strconv.Atoi(name[:4]); number <= last && err == nil {
			var script []byte
			script, err = all.ReadFile(name)
			files[name] = &fstest.MapFile{Data: script}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// oldRows are rows of an instance as the version before has them.
const oldRows = `
INSERT INTO registered_groups (folder, name, created_at, config) VALUES ('main', 'Main', 1, '{}'), ('main/eng', '', 2, '{"access":["telegram:7"]}');
INSERT INTO routes (seq, match, target) VALUES (0, 'platform=telegram', 'main'), (1, 'platform=slack verb=mention', 'main/eng');
INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES ('telegram:1', 'telegram', 'dm', 'Ann', 5);
INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at) VALUES ('telegram:1', 'a', 'in', 'not decided yet', 1, 1);
INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at, disposition, reason, routed_to, decided_at, decision_seq)
  VALUES ('telegram:1', 'b', 'in', 'decided', 2, 2, 'routed', 'route', 'main', 3, 1);
INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, derived_from, out_state)
  VALUES ('telegram:1', 'out', 'an answer', 3, 3, 2, 'queued');
INSERT INTO reminders (folder, chat_jid, kind, body, cron, time_zone, state, next_slot, created_by, created_at, updated_at)
  VALUES ('main', 'telegram:1', 'text', 'water the plants', '30 9 * * *', 'Europe/Berlin', 'active', 99, 'telegram:1', 4, 4);
INSERT INTO audit (at, who, what, detail) VALUES (1, 'cli', 'add group', 'main');`

// oldInstance is a data folder that the version before has made.
func oldInstance(t *testing.T) (data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "it's a folder")
	mustCall(t, data, historyOf(t, before()), fmt.Sprintf("schema version %d", before()), "up")
	exec(t, data, oldRows)
	return data
}

// dump has the rows of all tables of a database file, in the columns that the version before has.
func dump(t *testing.T, path string) string {
	t.Helper()
	db, err := openReading(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var lines []string
	for table, columns := range oldColumns(t) {
		err := each(db, func(rows *sql.Rows) error {
			values, to := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				to[i] = &values[i]
			}
			err := rows.Scan(to...)
			lines = append(lines, fmt.Sprint(table, " ", values))
			return err
		}, "SELECT "+strings.Join(columns, ", ")+" FROM "+quoted(table))
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func oldColumns(t *testing.T) map[string][]string {
	t.Helper()
	data := t.TempDir()
	mustCall(t, data, historyOf(t, before()), fmt.Sprintf("schema version %d", before()), "up")
	db, err := openDB(filepath.Join(data, "arizuko.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	columns := map[string][]string{}
	err = each(db, func(rows *sql.Rows) error {
		var table, column string
		err := rows.Scan(&table, &column)
		columns[table] = append(columns[table], quoted(column))
		return err
	}, `SELECT l.name, c.name FROM pragma_table_list l JOIN pragma_table_info(l.name) c
		WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite%' AND l.name <> 'schema_migrations'`)
	if err != nil {
		t.Fatal(err)
	}
	return columns
}

// printed returns the line of a receipt with the given parts, which a shell takes.
func printed(t *testing.T, receipt string, parts ...string) string {
	t.Helper()
	for line := range strings.Lines(receipt) {
		command := strings.TrimSpace(strings.TrimPrefix(line, "migrate:"))
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(command, part) }) {
			return command
		}
	}
	t.Fatalf("no line with %q in\n%s", parts, receipt)
	return ""
}

func must(t *testing.T, cmd *osexec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
	return string(out)
}

// TestUp_FromTheVersionBefore_WaysBackAsPrinted goes up, uses the new schema, and goes back by each of the printed commands.
func TestUp_FromTheVersionBefore_WaysBackAsPrinted(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{"steps": {"ARIZUKO_DATA=", " down 1"}, "copy": {"rm -f ", "&& mv "}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := oldInstance(t)
			path := filepath.Join(data, "arizuko.db")
			old := dump(t, path)
			receipt := must(t, process(data, "up"))
			for _, want := range []string{fmt.Sprintf("schema %d -> %d in ", before(), migrations.Latest()), "than before: none\n", "messages 3, ", "reminders 1, "} {
				if !strings.Contains(receipt, want) {
					t.Errorf("no %q in the receipt:\n%s", want, receipt)
				}
			}
			if got := dump(t, path); got != old {
				t.Errorf("after up:\n%s\nwant\n%s", got, old)
			}
			const used = `INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at) VALUES ('telegram:1', 'new', 'in', 'since', 9, 9)`
			exec(t, data, used)
			want := old
			if name == "steps" {
				want = dump(t, path)
			}
			must(t, with(osexec.Command("sh", "-c", printed(t, receipt, parts...)), append(os.Environ(), "MIGRATE_TEST_MAIN=1")...))
			if got := dump(t, path); got != want {
				t.Errorf("after the way back:\n%s\nwant\n%s", got, want)
			}
			mustCall(t, data, historyOf(t, before()), fmt.Sprintf("schema version %d, nothing to do", before()), "up")
		})
	}
}

func TestUp_KilledAtEachPoint_IsOldOrNewAndRepeatCompletes(t *testing.T) {
	t.Parallel()
	for _, point := range []dbcopy.Point{checked, kept, applied, committed} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			data := oldInstance(t)
			path := filepath.Join(data, "arizuko.db")
			old := dump(t, path)
			cmd := with(process(data, "up"), "MIGRATE_TEST_KILL="+string(point))
			if out, err := cmd.CombinedOutput(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v: %s", err, out)
			}
			want := strconv.Itoa(before())
			if point == committed {
				want = strconv.Itoa(migrations.Latest())
			}
			mustCall(t, data, migrations.FS, want, "version")
			if got := dump(t, path); got != old {
				t.Errorf("after the kill:\n%s\nwant\n%s", got, old)
			}
			must(t, process(data, "up"))
			mustCall(t, data, migrations.FS, strconv.Itoa(migrations.Latest()), "version")
			if got := dump(t, path); got != old {
				t.Errorf("at the end:\n%s\nwant\n%s", got, old)
			}
			if left, err := fs.Glob(os.DirFS(data), "*.partial*"); err != nil || len(left) > 0 {
				t.Errorf("it leaves %q, %v", left, err)
			}
			if got := dump(t, path+".schema-"+strconv.Itoa(before())); got != old {
				t.Errorf("the copy has\n%s\nwant\n%s", got, old)
			}
		})
	}
}

// On a server another machine may migrate, too.
func TestUp_IsLockedUntilItIsStored(t *testing.T) {
	t.Parallel()
	var s *schema
	p := program{cfg: config{data: oldInstance(t)}, files: migrations.FS}
	p.at = func(point dbcopy.Point) error {
		if point != applied {
			return nil
		}
		if err := s.driver.Lock(); !errors.Is(err, database.ErrLocked) {
			t.Errorf("before the commit: %v", err)
		}
		return nil
	}
	err := p.withSchema(p.cfg, func(opened *schema) error {
		s = opened
		_, _, err := s.up(func(*schema, version) (string, error) { return "", nil })
		return errors.Join(err, s.driver.Lock())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUp_SeveralVersions_AreOneTransaction fails in the last of three migrations: the schema stays at the first version, and
// the next upgrade has its copy and its way back from there.
func TestUp_SeveralVersions_AreOneTransaction(t *testing.T) {
	t.Parallel()
	from := before() - 1
	for name, server := range map[string]func(*testing.T) string{"file": func(*testing.T) string { return "" }, "server": newDatabase} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config{data: t.TempDir(), server: server(t), hasSecret: true}
			all := cfg.files().(fs.ReadFileFS)
			failing := historyIn(t, all, migrations.Latest())
			failing[fmt.Sprintf("%04d_failing.up.sql", migrations.Latest()+1)] = file("INSERT INTO nowhere VALUES (1)")
			var notes bytes.Buffer
			for _, step := range []struct {
				files fs.FS
				args  []string
				wants []string
			}{
				{historyIn(t, all, from), []string{"up"}, []string{fmt.Sprintf("schema version %d", from)}},
				{failing, []string{"up"}, []string{"nowhere", "nothing was changed"}},
				{all, []string{"version"}, []string{strconv.Itoa(from) + "\n"}},
				{all, []string{"up"}, []string{fmt.Sprintf("schema %d -> %d in ", from, migrations.Latest()),
					fmt.Sprintf("the way back to schema %d,", from), " down 2\n"}},
				{all, []string{"down", "2"}, []string{fmt.Sprintf("schema version %d", from)}},
			} {
				notes.Reset()
				p := program{cfg: cfg, files: step.files, lockWait: time.Second, out: &notes, notes: &notes}
				if err := p.run(step.args); err != nil {
					fmt.Fprintln(&notes, err)
				}
				for _, want := range step.wants {
					if !strings.Contains(notes.String(), want) {
						t.Errorf("%q: no %q in\n%s", step.args, want, &notes)
					}
				}
			}
		})
	}
}

func TestUp_KilledAnywhere_IsOldOrNew(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	data := oldInstance(t)
	fill(t, data, 100_000)
	began := time.Now()
	must(t, process(data, "up"))
	whole := time.Since(began)
	must(t, process(data, "down"))
	const kills = 10
	for i := range kills {
		cmd := process(data, "up")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(whole*time.Duration(i+1)/kills, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed, or done
		timer.Stop()
		got, err := call(data, migrations.FS, "version")
		n := value[int64](t, "sqlite3", filepath.Join(data, "arizuko.db"), `SELECT count(*) FROM messages`)
		if err != nil || n != 100_003 || got != strconv.Itoa(before()) && got != strconv.Itoa(migrations.Latest()) {
			t.Fatalf("kill %d: schema %s, %d messages, %v", i, got, n, err)
		}
		if got == strconv.Itoa(migrations.Latest()) {
			must(t, process(data, "down"))
		}
	}
	must(t, process(data, "up"))
}

// fill adds messages.
func fill(t *testing.T, data string, rows int) {
	t.Helper()
	exec(t, data, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at)
		SELECT 'telegram:' || (i %% 100), 'n' || i, 'in', 'text of message ' || i, i, i FROM n`, rows))
}

// TestUp_MillionRows_KeepsAll also rehearses it, and logs how long both take.
func TestUp_MillionRows_KeepsAll(t *testing.T) {
	need.Verify(t)
	data := oldInstance(t)
	fill(t, data, 1_000_000)
	t.Log(must(t, process(data, "rehearse")))
	receipt := must(t, process(data, "up"))
	t.Log(receipt)
	if !strings.Contains(receipt, "messages 1000003, ") || !strings.Contains(receipt, "than before: none\n") {
		t.Errorf("the receipt is\n%s", receipt)
	}
}

func TestUp_NoRoomForTheCopy_RefusedUnlessToldSo(t *testing.T) {
	data := need.Disk(t, 64<<20)
	mustCall(t, data, historyOf(t, before()), fmt.Sprintf("schema version %d", before()), "up")
	exec(t, data, oldRows)
	path := filepath.Join(data, "arizuko.db")
	old := dump(t, path)
	for _, command := range []string{"up", "rehearse"} {
		_, err := call(data, migrations.FS, command)
		if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "MiB are free") {
			t.Errorf("%s: %v, want a refusal", command, err)
		}
	}
	if got := dump(t, path); got != old {
		t.Errorf("a refusal changed the rows:\n%s", got)
	}
	mustCall(t, data, migrations.FS, fmt.Sprintf("schema version %d", migrations.Latest()), "up", "--no-copy")
}

func TestUp_DiskGetsFull_ChangesNothing(t *testing.T) {
	data := need.Disk(t, 8<<20)
	mustCall(t, data, historyOf(t, before()), fmt.Sprintf("schema version %d", before()), "up")
	exec(t, data, oldRows)
	path := filepath.Join(data, "arizuko.db")
	old := dump(t, path)
	files := historyOf(t, before())
	number := fmt.Sprintf("%04d_large", migrations.Latest())
	files[number+".up.sql"] = file(`CREATE TABLE large (x); INSERT INTO large SELECT zeroblob(1 << 20) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9));`)
	files[number+".down.sql"] = file(`DROP TABLE large;`)
	_, err := call(data, files, "up", "--no-copy")
	if exitCode(err) != exitFailure || !strings.Contains(err.Error(), "full") || !strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v", err)
	}
	if got := dump(t, path); got != old {
		t.Errorf("it changed the rows:\n%s", got)
	}
	mustCall(t, data, migrations.FS, fmt.Sprintf("schema version %d", migrations.Latest()), "up", "--no-copy")
}

func TestUp_RefusedRow_IsNamed_BeforeTheCopy(t *testing.T) {
	t.Parallel()
	data := oldInstance(t)
	exec(t, data, `UPDATE messages SET derived_from = 77 WHERE id = 3`)
	var notes bytes.Buffer
	p := program{cfg: config{data: data}, files: migrations.FS, lockWait: time.Second, out: &bytes.Buffer{}, notes: &notes}
	err := p.run([]string{"up"})
	if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "rows of messages that are not there (SELECT * FROM \"messages\" AS t WHERE t.\"derived_from\" IS NOT NULL") {
		t.Errorf("got %v", err)
	}
	mustCall(t, data, migrations.FS, strconv.Itoa(before()), "version")
	if copies, err := fs.Glob(os.DirFS(data), "*.schema-*"); err != nil || len(copies) > 0 {
		t.Errorf("references are checked before the copy, and there is %q, %v", copies, err)
	}
}

func TestUp_Server_ReceiptHasTheStepsBackAndNoPassword(t *testing.T) {
	t.Parallel()
	cfg := config{data: t.TempDir(), server: newDatabase(t), hasSecret: true}
	var notes bytes.Buffer
	for _, files := range []fs.FS{historyIn(t, migrations.PostgresFS(), before()), migrations.PostgresFS()} {
		notes.Reset()
		p := program{cfg: cfg, files: files, lockWait: time.Second, out: &bytes.Buffer{}, notes: &notes}
		if err := p.run([]string{"up"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{fmt.Sprintf("schema %d -> %d in ", before(), migrations.Latest()), "than before: ",
		" down 1\n  with ARIZUKO_DB as it is now\n"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("no %q in\n%s", want, &notes)
		}
	}
	if strings.Contains(notes.String(), "postgres:") {
		t.Errorf("the server's URL is in\n%s", &notes)
	}
}
