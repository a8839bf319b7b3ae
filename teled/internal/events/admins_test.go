package events

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/store/storetest"
)

func TestListen_Admins(t *testing.T) {
	t.Parallel()
	const (
		alice   = `{"ok":true,"result":[{"status":"creator","user":{"id":7,"first_name":"Alice"}}]}`
		none    = `{"ok":true,"result":[]}`
		secret  = `{"ok":false,"error_code":400,"description":"Bad Request: member list is inaccessible"}`
		down    = `{"ok":false,"error_code":502,"description":"Bad Gateway"}`
		between = `,{"update_id":2,"chat_member":{"chat":{"id":-5,"type":"group"},"from":{"id":8,"first_name":"Bob"},"date":1764000000,
			"old_chat_member":{"status":"administrator","user":{"id":7,"first_name":"Alice"}},
			"new_chat_member":{"status":"member","user":{"id":7,"first_name":"Alice"}}}}`
		anonymous = `{"update_id":1,"message":{"message_id":1,"date":1764000000,"chat":{"id":-5,"type":"supergroup","title":"Team"},
			"sender_chat":{"id":-5,"type":"supergroup","title":"Team"},"from":{"id":1087968824,"is_bot":true,"first_name":"Group"},"text":"x"}}`
		private = `{"update_id":1,"message":{"message_id":1,"date":1764000000,"chat":{"id":7,"type":"private","first_name":"Alice"},
			"from":{"id":7,"first_name":"Alice"},"text":"x"}}`
	)
	two := message(1, 1, "one") + "," + message(3, 2, "two")
	for name, tt := range map[string]struct {
		updates string
		answers []string
		was     bool          // it was an administrator by the rows
		step    time.Duration // between updates
		want    string
		asked   int
	}{
		"an administrator":               {two, []string{alice}, false, 0, "telegram:-5 telegram:7", 1},
		"a member":                       {two, []string{none}, true, 0, "", 1},
		"asked again after a time":       {two, []string{alice, none}, false, adminsFresh, "", 2},
		"one whose rights were taken":    {message(1, 1, "one") + between + "," + message(3, 2, "two"), []string{alice, none}, false, 0, "", 2},
		"Telegram does not say":          {two, []string{secret}, true, 0, "telegram:-5 telegram:7", 1},
		"Telegram is down":               {two, []string{down}, true, 0, "telegram:-5 telegram:7", 1},
		"Telegram was down":              {two, []string{down, none}, true, adminsPause, "", 2},
		"an anonymous administrator":     {anonymous, []string{none}, false, 0, "telegram:-5 telegram:-5", 0},
		"a private chat, which has none": {private, []string{none}, false, 0, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, strings.Split(strings.ReplaceAll(tt.updates, "},{\"update_id\"", "}\x00{\"update_id\""), "\x00")...)
			f.admins = tt.answers
			clock := time.Now()
			f.onPoll, f.now = func() { clock = clock.Add(tt.step) }, func() time.Time { return clock }
			if tt.was {
				f.exec(`INSERT INTO chat_admins VALUES ('telegram:-5', 'telegram:7')`)
			}
			f.run()
			got := storetest.Value[string](t, f.store, `SELECT ifnull(group_concat(chat_jid || ' ' || sender), '') FROM chat_admins`)
			if got != tt.want || f.asked != tt.asked {
				t.Errorf("admins %q after %d calls, want %q after %d", got, f.asked, tt.want, tt.asked)
			}
			if n := storetest.Value[int](t, f.store, `SELECT count(*) FROM messages WHERE verb = 'message'`); n != strings.Count(tt.updates, `"text"`) {
				t.Errorf("%d messages are stored", n)
			}
		})
	}
}
