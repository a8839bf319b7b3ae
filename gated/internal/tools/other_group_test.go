package tools

import (
	"database/sql"
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// A run of another group calls every tool with the example that works for acme: whether it is refused or not, the
// rows of acme stay as they were, and nothing of them comes back.
func TestTools_RunOfAnotherGroup_LearnsAndChangesNothing(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		f := fixtureFor(t, tool)
		f.write(func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: "third", Name: "third", CreatedAt: 1, Config: []byte("{}")})
			return err
		})
		f.route("chat_jid=telegram:-4", "third")
		_, _, other := f.startRun("third", "telegram:-4", "hello there")
		before := f.stateOfAcme()
		text, isError := f.callAs(other, tool.Name, tool.example())
		if after := f.stateOfAcme(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		for _, secret := range []string{"who deploys?", "mine?", "acme"} {
			if !isError && strings.Contains(text, secret) {
				t.Errorf("it returns %q: %s", secret, text)
			}
		}
	})
}

// stateOfAcme are the rows of the group acme, of those below it, and of its chat.
func (f *fixture) stateOfAcme() string {
	f.t.Helper()
	db := f.db()
	var state strings.Builder
	for _, rows := range []string{
		`SELECT 'message ' || json_array(id, direction, kind, content, out_state, target_id) FROM messages WHERE chat_jid = '` + chat + `' OR chat_jid GLOB '*:acme*' ORDER BY id`,
		`SELECT 'turn ' || json_array(id, state) FROM turns WHERE folder GLOB 'acme*' ORDER BY id`,
		`SELECT 'session ' || json_array(group_folder, topic, session_id) FROM sessions WHERE group_folder GLOB 'acme*' ORDER BY group_folder, topic`,
		`SELECT 'poll ' || json_array(id, state, closed_at) FROM polls WHERE folder GLOB 'acme*' ORDER BY id`,
		`SELECT 'reminder ' || json_array(id, state, body, cron, next_slot) FROM reminders WHERE folder GLOB 'acme*' ORDER BY id`,
		`SELECT 'fork ' || json_array(topic, ended_at) FROM forks WHERE chat_jid = '` + chat + `' ORDER BY topic`,
		`SELECT 'object ' || json_array(object_id, active_until) FROM context_objects WHERE chat_id = '` + chat + `' ORDER BY object_id`,
	} {
		var all sql.NullString
		if err := db.QueryRow("SELECT group_concat(line, char(10)) FROM (" + strings.Replace(rows, " FROM", " AS line FROM", 1) + ")").Scan(&all); err != nil {
			f.t.Fatal(err)
		}
		state.WriteString(all.String + "\n")
	}
	return state.String()
}
