package upkeep

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/need"
)

// files are the checksums of all files but the database, which daemons write, and logs.
func files(t *testing.T, data string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(data), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == "logs", strings.HasPrefix(name, "arizuko.db"):
			return nil
		case !d.Type().IsRegular():
			all[name] = d.Type().String()
			return nil
		}
		content, err := os.ReadFile(filepath.Join(data, name))
		all[name] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRehearse_LiveInstance_NamesWhatWouldDiffer rehearses an upgrade while the old daemons run: without a change of rules
// nothing differs; what was changed by SQL, of which nothing else tells, does.
func TestRehearse_LiveInstance_NamesWhatWouldDiffer(t *testing.T) {
	need.Full(t)
	storetest.OnFile(t)
	// Gated looks at a group's files right after a turn's end, and writes that down.
	f, old := startUpgrade(t, "UNDO_QUOTA=0")
	f.AddRoute("platform=slack verb=mention", "main")
	f.AddRoute("platform=slack", "main#observe")
	bin := later(t, additive, additiveDown, "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
	for _, m := range []msg.Message{
		{ChatJID: "telegram:7", Sender: "telegram:7", Content: "a question"},
		{ChatJID: "telegram:7", Sender: "telegram:7", Content: "/ping"},
		{ChatJID: "telegram:7", Sender: "telegram:7", Content: "#deploy ship it"},
		{ChatJID: "telegram:7", Sender: "telegram:7", Content: "/new"},
		{ChatJID: "telegram:7", Sender: "telegram:7", Content: "#build"},
		{ChatJID: "telegram:7", Sender: "telegram:7", Content: "in that topic"},
		{ChatJID: "slack:C1", Sender: "slack:U1", Content: "plain"},
		{ChatJID: "slack:C1", Sender: "slack:U1", Verb: msg.VerbMention, Content: "called"},
		{ChatJID: "slack:C1", Sender: "slack:U1", Content: "engaged or not", ThreadID: "1.1"},
		{ChatJID: "web:main", Sender: "web:operator", Content: "from the web"},
		{ChatJID: "discord:1", Sender: "discord:1", Content: "no route leads on from here"},
	} {
		f.WaitDecided(f.Put(m)[0])
	}
	f.WaitIdle()
	morning := time.Now().UTC().Truncate(24 * time.Hour).Add(33*time.Hour + 30*time.Minute).UnixMilli()
	f.Exec(`INSERT INTO reminders (folder, chat_jid, kind, body, cron, time_zone, state, next_slot, created_at, updated_at)
		VALUES ('asked', 'telegram:7', 'text', 'x', '30 9 * * *', 'UTC', 'active', ?, 1, 1)`, morning)
	f.Exec(`UPDATE reminders SET next_slot = next_slot - 86400000 WHERE next_slot - 86400000 > ?`, time.Now().UnixMilli())

	before := files(t, f.Data)
	rehearse := func() string {
		t.Helper()
		out, code := migrate(f, bin, "rehearse")
		if code != 0 {
			t.Fatalf("rehearse ends with %d: %s", code, out)
		}
		t.Log(out)
		return out
	}
	out := rehearse()
	for _, want := range []string{
		fmt.Sprintf("schema %d -> %d in ", next()-1, next()), "than before: none\n", "messages: 11 as stored, 0 different\n",
		"next times of reminders: 1 as stored, 0 different\n", " as stored, 0 different\n", "the instance was not changed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if version(f) != next()-1 {
		t.Error("it migrated the instance")
	}
	if after := files(t, f.Data); !maps.Equal(before, after) {
		t.Errorf("it changed files: %v, before %v", after, before)
	}
	f.Exec(`UPDATE audit SET at = at - 60000`) // what routes and groups were changed right before explains nothing
	f.Exec(`UPDATE registered_groups SET config = '{"access":["telegram:9"]}' WHERE folder = 'asked'`)
	f.Exec(`UPDATE routes SET impulse_config = '{"quiet_ms":60000}' WHERE target = 'main'`)
	f.Exec(`UPDATE reminders SET next_slot = next_slot + 1800000`)
	out = rehearse()
	for _, want := range []string{
		": was routed (route) to asked, now dropped (no_access)\n", ", now held for 1m0s\n",
		"next times of reminders: 0 as stored, 1 different\n  reminder 1 of asked in telegram:7: was next at ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	f.Stop(harness.Gated)
	rehearse() // without gated, too
	f.Instance.UsePrograms(old)
	f.Restart(harness.Gated)
}
