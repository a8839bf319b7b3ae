package foreign

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/need"
)

// TestShell_SystemsSQLite_EvaluatesDefaultsAndTriggers writes with the system's
// SQLite, which is older than the one that is linked into the daemons.
func TestShell_SystemsSQLite_EvaluatesDefaultsAndTriggers(t *testing.T) {
	t.Parallel()
	need.Program(t, "sqlite3", "sqlite3")
	shell := exec.CommandContext(t.Context(), "sqlite3", "-bail", storetest.File(t))
	shell.Stdin = strings.NewReader(`
		INSERT INTO chats (jid, platform, kind) VALUES ('irc:a', 'irc', 'group');
		INSERT INTO messages (chat_jid, direction, timestamp, received_at, out_state) VALUES ('irc:a', 'out', 1, 1, 'sent');
		INSERT INTO deliveries (message_id, part, state, platform_id) VALUES (1, 0, 'sent', 'x');
		UPDATE deliveries SET error = 'e';
		UPDATE deliveries SET platform_id = 'y';
		INSERT INTO registered_groups (folder) VALUES ('a');
		INSERT INTO routes (target) VALUES ('a');
		INSERT INTO sessions (group_folder, session_id) VALUES ('a', 's');
		INSERT INTO chat_reply_state (jid, topic) VALUES ('irc:a', '');
		SELECT 'platform', platform FROM messages;
		SELECT 'seq', seq FROM deliveries;
		SELECT 'at', updated_at FROM deliveries;
		SELECT 'at', updated_at FROM sessions;
		SELECT 'at', created_at FROM registered_groups;
		SELECT 'at', engaged_at FROM chat_reply_state;
		SELECT 'counter', name, value FROM counters ORDER BY name;
		PRAGMA integrity_check;`)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := regexp.MustCompile(`^platform\|irc\nseq\|2\n(at\|\d{13}\n){4}counter\|deliveries\|2\ncounter\|routing\|3\nok\n$`)
	if !want.Match(out) {
		t.Errorf("the shell printed\n%s", out)
	}
}
