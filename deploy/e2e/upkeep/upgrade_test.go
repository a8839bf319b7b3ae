package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

func startUpgrade(t *testing.T, env ...string) (f *harness.Fixture, old string) {
	t.Helper()
	t.Parallel()
	old, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	// The agent stays that of the old version, and a gated that is root shows agents only its own program folder.
	f = harness.Start(t, programs, harness.Options{Env: append(env, "AGENT_READABLE="+old)})
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
