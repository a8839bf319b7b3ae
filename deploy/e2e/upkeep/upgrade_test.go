package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/migrations"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// next is the schema of a later version, which only these tests have.
func next() int { return migrations.Latest() + 1 }

// later builds a later version: the same code with one more migration. The file is laid over the source tree for the
// compiler, which embeds it; the tree itself stays as it is.
func later(t *testing.T, up, down string, packages ...string) (bin string) {
	t.Helper()
	folder := t.TempDir()
	source, err := filepath.Abs("../../../migrations")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for suffix, sql := range map[string]string{"up": up, "down": down} {
		name := fmt.Sprintf("%04d_later.%s.sql", next(), suffix)
		replace[filepath.Join(source, name)] = filepath.Join(folder, name)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(sql), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err = harness.NewProgramsWith(file, packages...).Bin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(bin) })
	return bin
}

// additive is a migration that daemons of the version before do not notice.
const (
	additive = `CREATE TABLE later_things (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
ALTER TABLE messages ADD COLUMN later_note TEXT NOT NULL DEFAULT '';
CREATE INDEX messages_later ON messages (later_note) WHERE later_note <> '';
CREATE INDEX turns_later ON turns (folder, created_at);`
	additiveDown = `DROP INDEX turns_later; DROP INDEX messages_later; ALTER TABLE messages DROP COLUMN later_note; DROP TABLE later_things;`
)

func startUpgrade(t *testing.T) (f *harness.Fixture, old string) {
	t.Helper()
	t.Parallel()
	old, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	// The agent stays that of the old version, and a gated that is root shows agents only its own program folder.
	f = harness.Start(t, programs, harness.Options{Env: []string{"AGENT_READABLE=" + old}})
	f.AddGroups("main", "asked")
	f.AddRoute("platform=telegram", "asked")
	return f, old
}

// minQuestions are asked in any case, however busy the machine is.
const minQuestions = 5

// ask writes messages, each in a chat of its own, until the returned function is called; that waits for
// the answers, and fails the test unless each message has exactly one.
func ask(f *harness.Fixture) (wantAnswers func()) {
	ctx, stop := context.WithCancel(f.T.Context())
	sent := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil || n < minQuestions; n++ {
			_, err := f.Adapter.Receive(context.Background(), msg.Message{ChatJID: fmt.Sprintf("telegram:%d", 1000+n), Content: fmt.Sprintf("question %d", n)})
			if err != nil {
				f.T.Errorf("question %d: %v", n, err)
				break
			}
			select {
			case <-ctx.Done():
			case <-f.T.Context().Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
		sent <- n
	}()
	return func() {
		f.T.Helper()
		stop()
		count := <-sent
		f.WaitIdle()
		for n := range count {
			if got := f.Echoes(fmt.Sprintf("telegram:%d", 1000+n)); len(got) != 1 {
				f.T.Errorf("question %d has answers %q", n, got)
			}
		}
	}
}

func version(f *harness.Fixture) int {
	f.T.Helper()
	n, err := strconv.Atoi(f.Value(`SELECT version FROM schema_migrations`))
	f.OK(err)
	return n
}

func migrate(f *harness.Fixture, bin string, args ...string) (out string, code int) {
	f.T.Helper()
	f.Instance.UsePrograms(bin)
	cmd := f.Instance.Command("migrate", args...)
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// TestUpgrade_WithinFloorAndBack_UnderLoad migrates while the old daemons run, exchanges them one by one, and goes back the
// same way.
func TestUpgrade_WithinFloorAndBack_UnderLoad(t *testing.T) {
	need.Verify(t)
	f, old := startUpgrade(t)
	bin := later(t, additive, additiveDown, "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
	wantAnswers := ask(f)
	f.Until("a first answer", func() bool { return len(f.Echoes("telegram:1000")) > 0 })

	if out, code := migrate(f, bin, "up"); code != 0 || version(f) != next() {
		t.Fatalf("migrate up ends with %d: %s", code, out)
	}
	kept := f.Instance.Database() + ".schema-" + strconv.Itoa(next()-1)
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	answered := func(where string) {
		t.Helper()
		row := f.Say("web:main", "asked "+where)
		if got := f.Answer(row); !strings.Contains(got, "asked "+where) {
			t.Errorf("%s: %s", where, got)
		}
	}
	exchange := func(bin string, daemon string) {
		t.Helper()
		f.Instance.UsePrograms(bin)
		if code := f.Stop(daemon); code != 0 {
			t.Errorf("%s ends with %d", daemon, code)
		}
		f.Restart(daemon)
	}
	answered("old daemons, new schema")
	exchange(bin, harness.Gated)
	answered("new gated, old routd")
	exchange(bin, harness.Routd)
	answered("new daemons")
	exchange(old, harness.Routd)
	answered("new gated, old routd again")
	exchange(old, harness.Gated)
	answered("old daemons again")
	if out, code := migrate(f, old, "up"); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("migrate up of the old version: %d, %s", code, out)
	}
	if out, code := migrate(f, old, "down"); code != 78 || !strings.Contains(out, "use the newer program to go back") {
		t.Errorf("migrate down of the old version: %d, %s", code, out)
	}
	if out, code := migrate(f, bin, "down"); code != 0 || version(f) != next()-1 {
		t.Errorf("migrate down: %d, %s", code, out)
	}
	answered("old daemons, old schema")
	f.Instance.UsePrograms(old)
	wantAnswers()
}

// TestUpgrade_AboveFloor_OldDaemonsRefuseAndCopyLeadsBack raises the floor, and goes back by the copy that migrate kept.
func TestUpgrade_AboveFloor_OldDaemonsRefuseAndCopyLeadsBack(t *testing.T) {
	need.Verify(t)
	f, old := startUpgrade(t)
	before := f.Say("web:main", "before the upgrade")
	f.WaitEnded(before)
	floor := fmt.Sprintf(`UPDATE schema_floor SET floor = %d; DROP INDEX messages_routed;`, next())
	bin := later(t, floor, "SELECT 1;", "arizuko/migrations/cmd/migrate")
	for _, daemon := range []string{harness.Gated, harness.Routd} {
		f.Stop(daemon)
	}
	if out, code := migrate(f, bin, "up"); code != 0 {
		t.Fatalf("migrate up ends with %d: %s", code, out)
	}
	f.Instance.UsePrograms(old)
	for _, daemon := range []string{harness.Gated, harness.Routd} {
		f.StartDaemon(daemon)
		if code := f.ExitCode(daemon); code != 78 {
			t.Errorf("%s ends with %d", daemon, code)
		}
		want := fmt.Sprintf("it was built for schema %d, the floor is %d", next()-1, next())
		if log := f.Log(daemon); !strings.Contains(log, want) {
			t.Errorf("log of %s:\n%s", daemon, log)
		}
	}
	if out, code := migrate(f, old, "up"); code != 78 || !strings.Contains(out, "use the newer program") {
		t.Errorf("migrate up of the old version: %d, %s", code, out)
	}

	f.Reopen(func() {
		path := f.Instance.Database()
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		f.OK(os.Rename(path+".schema-"+strconv.Itoa(next()-1), path))
	})
	if version(f) != next()-1 {
		t.Errorf("the copy has schema %d", version(f))
	}
	f.Restart(harness.Routd)
	f.Restart(harness.Gated)
	if got := f.Answer(before); !strings.Contains(got, "before the upgrade") {
		t.Errorf("the copy has answers %q", got)
	}
	if got := f.Answer(f.Say("web:main", "back again")); !strings.Contains(got, "back again") {
		t.Errorf("answer: %q", got)
	}
}

// TestUpgrade_MigrationKilled_OldSchemaStays kills migrate while it changes rows, under load. The first time there are more rows
// than it writes until it is killed, however late that is; the second time it is quick, since the load waits for it.
func TestUpgrade_MigrationKilled_OldSchemaStays(t *testing.T) {
	f, old := startUpgrade(t)
	slow := `CREATE TABLE later_rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
INSERT INTO later_rows WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
	WHERE i < (SELECT CASE count(*) WHEN 0 THEN 4000000 ELSE 1000 END FROM messages WHERE content = 'after the kill')) SELECT i, hex(randomblob(100)) FROM n;`
	bin := later(t, slow, "DROP TABLE later_rows;", "arizuko/migrations/cmd/migrate")
	wantAnswers := ask(f)
	f.Until("a first answer", func() bool { return len(f.Echoes("telegram:1000")) > 0 })
	f.Instance.UsePrograms(bin)
	cmd := f.Instance.Command("migrate", "up")
	f.OK(cmd.Start())
	f.Until("the migration to write rows", func() bool {
		info, err := os.Stat(f.Instance.Database() + "-wal")
		return err == nil && info.Size() > 16<<20
	})
	f.OK(cmd.Process.Signal(syscall.SIGKILL))
	if err := cmd.Wait(); err == nil {
		t.Fatal("the migration was not killed")
	}
	if v := version(f); v != next()-1 || f.Value(`SELECT dirty FROM schema_migrations`) != "0" {
		t.Errorf("the schema is %d", v)
	}
	if got := f.Value(`SELECT count(*) FROM sqlite_master WHERE name = 'later_rows'`); got != "0" {
		t.Error("a part of the migration is left")
	}
	if got := f.Answer(f.Say("web:main", "after the kill")); !strings.Contains(got, "after the kill") {
		t.Errorf("answer: %q", got)
	}
	if out, code := migrate(f, bin, "up"); code != 0 || version(f) != next() {
		t.Errorf("migrate up again: %d, %s", code, out)
	}
	f.Instance.UsePrograms(old)
	wantAnswers()
}

// TestUpgrade_PendingRequests_ApprovedAfterItAndAfterRollback makes requests with the old daemons. One is approved after
// the upgrade, the other after the way back.
func TestUpgrade_PendingRequests_ApprovedAfterItAndAfterRollback(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	const afterUpgrade, afterRollback = "telegram:7", "telegram:8"
	d := newOnboarding(t)
	old, err := programs.Bin()
	d.OK(err)
	d.Instance.Env = append(d.Instance.Env, "AGENT_READABLE="+old)
	bin := later(t, additive, additiveDown, "arizuko/gated", "arizuko/routd", "arizuko/onbod", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
	d.Migrate()
	d.startOnboarders()
	for _, chat := range []string{afterUpgrade, afterRollback} {
		d.Put(msg.Message{ChatJID: chat, Sender: chat, Content: "one"})
	}
	parked := func(count string) {
		t.Helper()
		d.Until(count+" rows to be parked", func() bool {
			return d.Value(`SELECT count(*) FROM messages WHERE disposition = 'onboarding'`) == count
		})
	}
	exchange := func(bin string) {
		t.Helper()
		d.Instance.UsePrograms(bin)
		for _, daemon := range slices.Backward(onboarders) {
			if code := d.Stop(daemon); code != 0 {
				t.Errorf("%s ends with %d", daemon, code)
			}
		}
		d.startOnboarders()
	}
	parked("2")
	if out, code := migrate(d.Fixture, bin, "up"); code != 0 {
		t.Fatalf("migrate up ends with %d: %s", code, out)
	}
	exchange(bin)
	d.approve(afterUpgrade)
	parked("1")
	d.WantEchoes(afterUpgrade, "one")
	d.Put(msg.Message{ChatJID: afterRollback, Sender: afterRollback, Content: "two"})
	parked("2")
	exchange(old)
	if out, code := migrate(d.Fixture, bin, "down"); code != 0 || version(d.Fixture) != next()-1 {
		t.Fatalf("migrate down ends with %d: %s", code, out)
	}
	d.Instance.UsePrograms(old)
	d.approve(afterRollback)
	parked("0")
	d.WantEchoes(afterRollback, "one", "two")
	d.Put(msg.Message{ChatJID: afterUpgrade, Sender: afterUpgrade, Content: "again"})
	d.WantEchoes(afterUpgrade, "one", "again")
}
