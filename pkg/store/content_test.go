package store_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func hostileTexts() map[string]string {
	return map[string]string{
		"NUL bytes":     "a\x00b\x00",
		"invalid UTF-8": "caf\xe9 \xff\xfe\xc0\x80 \xed\xa0\x80",
		"1 MiB":         strings.Repeat("żółć\n", 1<<20/9),
		"quotes":        `'); DROP TABLE messages; --"`,
		"only NUL":      "\x00",
		"nothing":       "",
	}
}

func TestPutMessage_HostileText_IsStoredClean(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			long := text[:min(len(text), 1<<10)]
			m := &msg.Message{
				ChatJID: "telegram:" + name + long, PlatformID: long + "1", Direction: msg.In, Kind: msg.KindMessage,
				Sender: long, SenderName: long, Verb: long + "verb", Content: text, Topic: long, ThreadID: long,
				ReplyToID: long + "r", TargetID: long + "t", Timestamp: -1 << 63, ReceivedAt: 1<<63 - 1, Source: long,
				GroupKey: long, Quote: long, Attachments: []msg.Attachment{{Name: long, Ref: long + "f"}},
			}
			again := *m
			storetest.Stored(t, s, m)
			got := storetest.Must(s.Message(t.Context(), m.ID))(t)
			if diff := cmp.Diff(m, got); diff != "" {
				t.Errorf("by id (-want +got):\n%.2000s", diff)
			}
			for _, stored := range []string{got.ChatJID, got.PlatformID, got.Sender, got.SenderName, got.Verb, got.Content, got.Topic,
				got.ThreadID, got.ReplyToID, got.TargetID, got.Source, got.GroupKey, got.Quote, got.Attachments[0].Name} {
				if !utf8.ValidString(stored) || strings.Contains(stored, "\x00") {
					t.Errorf("stored: %.80q", stored)
				}
			}
			if utf8.ValidString(text) && !strings.Contains(text, "\x00") && got.Content != text {
				t.Errorf("a valid text was changed to %.80q", got.Content)
			}
			if diff := cmp.Diff(m, storetest.Must(s.MessageByPlatformID(t.Context(), m.ChatJID, m.PlatformID))(t)); diff != "" {
				t.Errorf("by platform id (-want +got):\n%.2000s", diff)
			}
			page := storetest.Must(gatedtest.Undecided(t.Context(), s.Reader, m.ChatJID, 0, 10))(t)
			if len(page) != 1 || page[0].ID != m.ID {
				t.Errorf("undecided: %d rows", len(page))
			}
			if id, fresh, err := storetest.Put(t.Context(), s, &again); id != m.ID || fresh || err != nil {
				t.Errorf("again: %d %v %v", id, fresh, err)
			}
		})
	}
	if s.Path() == "" {
		return
	}
	if got := storetest.Value[string](t, s, "PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
}

func TestPutMessage_LongTexts_AreCutWithARemark(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	long := strings.Repeat("ł", 1<<20) // 2 MiB
	m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: long, Quote: long, SenderName: long, Sender: long,
		Attachments: slices.Repeat([]msg.Attachment{{Name: long, MIME: long, Ref: long}}, 150)})
	got := storetest.Must(s.Message(t.Context(), m.ID))(t)
	if diff := cmp.Diff(m, got); diff != "" {
		t.Fatalf("(-want +got):\n%.500s", diff)
	}
	if len(got.Content) > 1<<20 || !strings.HasSuffix(got.Content, "\n[cut: the message has 2097152 bytes]") || !utf8.ValidString(got.Content) {
		t.Errorf("content: %d bytes, ends in %q", len(got.Content), got.Content[len(got.Content)-60:])
	}
	if len(got.Quote) > 64<<10 || !strings.HasSuffix(got.Quote, "bytes]") || len(got.SenderName) != 1<<10 || len(got.Sender) != 4<<10 {
		t.Errorf("quote %d, name %d, sender %d bytes", len(got.Quote), len(got.SenderName), len(got.Sender))
	}
	last := got.Attachments[len(got.Attachments)-1]
	if len(got.Attachments) != 101 || last.Name != "50 more files" || last.Error != "left out: a message has at most 100 files" {
		t.Errorf("%d attachments, last %+v", len(got.Attachments), last)
	}
	whole := strings.Repeat("x", 1<<20)
	if got := storetest.Must(s.Message(t.Context(), storetest.Inbound(t, s, storetest.Chat, whole).ID))(t); got.Content != whole {
		t.Errorf("1 MiB became %d bytes", len(got.Content))
	}
	id := storetest.Inbound(t, s, storetest.Chat, "edited").ID
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.ReplaceContent(tx, id, long+"\x00", false, msg.VerbMessage) })
	if got := storetest.Must(s.Message(t.Context(), id))(t); len(got.Content) > 1<<20 || strings.Contains(got.Content, "\x00") {
		t.Errorf("an edit made it %d bytes", len(got.Content))
	}
}

// TestForeignAdapterRows inserts rows with only the columns that foreign adapters
// fill.
func TestForeignAdapterRows(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.File(t), nil)
	const insert = `INSERT INTO messages (chat_jid, platform_id, direction, sender, sender_name, verb, content, topic,
		timestamp, received_at, source) VALUES (?,?,?,?,?,?,?,?,?,?,?)`
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			var id int64
			storetest.Write(t, s, func(tx *store.Tx) error {
				_, err := tx.GetRow(t.Context(), insert+` RETURNING id`, []any{"irc:#go", name, "in", text, "nick", "", text, text, 5, 6, "ircd"}, &id)
				return err
			})
			want := &msg.Message{
				ID: id, ChatJID: "irc:#go", PlatformID: name, Direction: msg.In, Kind: msg.KindMessage, Sender: text,
				SenderName: "nick", Verb: msg.VerbMessage, Content: text, Topic: text, Timestamp: 5, ReceivedAt: 6, Source: "ircd",
			}
			if diff := cmp.Diff(want, storetest.Must(s.Message(t.Context(), id))(t)); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
			storetest.Decide(t, s, id, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
		})
	}
	if platform := storetest.Value[string](t, s, `SELECT DISTINCT platform FROM messages`); platform != "irc" {
		t.Errorf("platform %q", platform)
	}
}

// Foreign adapters may also fill the columns of albums and quotes, and a duration.
func TestForeignAdapterRows_AlbumsAndQuotes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, sender, sender_name, verb, content, topic, timestamp, received_at,
			source, group_key, quote, reply_to_id, attachments)
			VALUES ('irc:#go', '7', 'in', 'irc:ann', 'ann', 'reply', 'this?', '', 5, 6, 'ircd', 'album', 'that', '6',
			'[{"path":"","name":"v.ogg","mime":"audio/ogg","size":3,"ref":"r","duration":12}]')`)
	})
	got := storetest.Must(gatedtest.GroupRows(t.Context(), s.Reader, "irc:#go", "album"))(t)
	if len(got) != 1 || got[0].GroupKey != "album" || got[0].Quote != "that" || len(got[0].Attachments) != 1 || got[0].Attachments[0].Duration != 12 {
		t.Errorf("read back %+v", got)
	}
}

// TestUndecided_HugeForeignRow_IsCutWhileRead measures what Go allocates for a row
// of 16 MiB: it must not be copied into the process whole. Not parallel: the
// measure is of the whole process.
func TestUndecided_HugeForeignRow_IsCutWhileRead(t *testing.T) {
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO messages (chat_jid, direction, timestamp, received_at, sender_name, quote, content, attachments)
			SELECT 'irc:#go', 'in', 1, 1, ?1, ?1, ?2, ?3`,
			strings.Repeat("ł", 1<<18), strings.Repeat("ł", 8<<20)+"x", "[]"+strings.Repeat(" ", 8<<20))
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rows := storetest.Must(gatedtest.Undecided(t.Context(), s.Reader, "irc:#go", 0, 10))(t)
	runtime.ReadMemStats(&after)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	m := rows[0]
	if len(m.Content) > 1<<20 || !utf8.ValidString(m.Content) || !strings.HasSuffix(m.Content, "ł\n[cut: the message has 16777217 bytes]") {
		t.Errorf("content: %d bytes, ends in %q", len(m.Content), m.Content[len(m.Content)-60:])
	}
	if len(m.SenderName) > 1<<10 || len(m.Quote) > 64<<10 || m.Attachments != nil {
		t.Errorf("name %d bytes, quote %d bytes, %d attachments", len(m.SenderName), len(m.Quote), len(m.Attachments))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}

func TestMessage_InvalidJSON_CountsAsNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	cat := []msg.Attachment{{Path: "media/202611/cat.jpg", Name: "cat.jpg", MIME: "image/jpeg", Size: 7}, {Name: "b", Error: "too big"}}
	home := &msg.ReturnAddress{Kind: msg.Delegation, TurnID: 3, RootTurnID: 2, Depth: 1, Folder: "acme", ChatJID: storetest.Chat, Claims: true}
	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	tests := []struct {
		name, attachments, forwarded string
		want                         msg.Message
	}{
		{"as written", `[{"path":"media/202611/cat.jpg","name":"cat.jpg","mime":"image/jpeg","size":7},{"name":"b","error":"too big"}]`,
			home.JSON(), msg.Message{Attachments: cat, ForwardedFrom: home}},
		{"null", `null`, `null`, msg.Message{}},
		{"empty", `[]`, `{}`, msg.Message{Attachments: []msg.Attachment{}}},
		{"of another type", `{"path":"x"}`, `["delegate"]`, msg.Message{}},
		{"a string", `"[]"`, `"{}"`, msg.Message{}},
		{"a number", `1e999`, `-0`, msg.Message{}},
		{"a field of another type", `[{"path":"x"},{"path":7}]`, `{"kind":"answer","turn_id":"x"}`, msg.Message{}},
		{"a size that does not fit", `[{"size":1e30}]`, `{"kind":"answer","depth":1e30}`, msg.Message{}},
		{"deep", deep, deep, msg.Message{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var id int64
			storetest.Write(t, s, func(tx *store.Tx) error {
				_, err := tx.GetRow(t.Context(), `INSERT INTO messages (chat_jid, direction, timestamp, received_at, attachments, forwarded_from)
					VALUES ('a:1', 'in', 1, 1, ?, ?) RETURNING id`, []any{tt.attachments, tt.forwarded}, &id)
				return err
			})
			got := storetest.Must(s.Message(t.Context(), id))(t)
			if diff := cmp.Diff(tt.want.Attachments, got.Attachments); diff != "" {
				t.Errorf("attachments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want.ForwardedFrom, got.ForwardedFrom); diff != "" {
				t.Errorf("forwarded from (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConstraints_InvalidRows_AreRefused lists rows that no writer, foreign ones
// included, can insert.
func TestConstraints_InvalidRows_AreRefused(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.File(t), nil)
	trigger := storetest.Inbound(t, s, storetest.Chat, "trigger").ID
	storetest.Stored(t, s, &msg.Message{ChatJID: "a:1", PlatformID: "taken", Direction: msg.In})
	live := gatedtest.Begun(t, s, gatedtest.Queued(t, s))
	message := func(columns, values string) string {
		return fmt.Sprintf(`INSERT INTO messages (chat_jid, direction, timestamp, received_at%s) VALUES ('a:1', 'in', 1, 1%s)`, columns, values)
	}
	turnOf := func(kind string, trigger int64, columns, values string) string {
		return fmt.Sprintf(`INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, created_at%s)
			VALUES ('%s', 'acme', 'a:1', '', %d, '', 1, 1%s)`, columns, kind, trigger, values)
	}
	turn := func(columns, values string) string { return turnOf("conversation", trigger, columns, values) }
	const decided = ", disposition, reason, decided_at, decision_seq"
	legal := []string{
		message("", ""),
		message(decided, ", 'dropped', 'no_route', 1, 9"),
		message(", platform_id", ", NULL"), message(", platform_id", ", NULL"),
		turn(", state", ", 'queued'"),
		turn(", state, ended_at", ", 'failed', 1"),
		turn(", state, run_id", fmt.Sprint(", 'running', ", live.ID)),
	}
	illegal := map[string]string{
		"no chat":                            `INSERT INTO messages (direction, timestamp, received_at) VALUES ('in', 1, 1)`,
		"a chat without a platform":          `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES (':1', 'in', 1, 1)`,
		"an invalid chat address":            `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('telegram', 'in', 1, 1)`,
		"unknown direction":                  `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('a:1', 'up', 1, 1)`,
		"a time that is not a number":        `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('a:1', 'in', 'now', 1)`,
		"content that is not text":           message(", content", ", x'00ff'"),
		"no content":                         message(", content", ", NULL"),
		"no topic":                           message(", topic", ", NULL"),
		"a platform id twice":                message(", platform_id", ", 'taken'"),
		"an empty platform id":               message(", platform_id", ", ''"),
		"a platform by hand":                 message(", platform", ", 'b'"),
		"unknown kind":                       message(", kind", ", 'letter'"),
		"attachments that are not JSON":      message(", attachments", ", '[{'"),
		"a return address that is not JSON":  message(", forwarded_from", ", ''"),
		"a negative file count":              message(", pending_files", ", -1"),
		"addressed above 1":                  message(", addressed", ", 2"),
		"is_bot above 1":                     message(", is_bot_message", ", 2"),
		"derived from nothing":               message(", derived_from", ", 4711"),
		"unknown disposition":                message(decided, ", 'lost', 'no_route', 1, 9"),
		"a disposition without reason":       message(decided, ", 'dropped', NULL, 1, 9"),
		"a disposition without time":         message(decided, ", 'dropped', 'no_route', NULL, 9"),
		"a disposition without number":       message(decided, ", 'dropped', 'no_route', 1, NULL"),
		"a reason without disposition":       message(decided, ", NULL, 'no_route', NULL, NULL"),
		"routed nowhere":                     message(decided, ", 'routed', 'route', 1, 9"),
		"an inbound row with an out_state":   message(", out_state", ", 'sent'"),
		"an outbound row with a disposition": `INSERT INTO messages (chat_jid, direction, timestamp, received_at` + decided + `) VALUES ('a:1', 'out', 1, 1, 'dropped', 'no_route', 1, 9)`,
		"unknown out_state": `INSERT INTO messages (chat_jid, direction, timestamp, received_at, out_state)
			VALUES ('a:1', 'out', 1, 1, 'lost')`,
		"a part before the first": fmt.Sprintf(`INSERT INTO deliveries (message_id, part, seq, state, updated_at) VALUES (%d, -1, 1, 'sent', 1)`, trigger),
		"a part of a missing row": `INSERT INTO deliveries (message_id, part, seq, state, updated_at) VALUES (4711, 0, 1, 'sent', 1)`,
		"unknown state of a part": fmt.Sprintf(`INSERT INTO deliveries (message_id, part, seq, state, updated_at) VALUES (%d, 0, 1, 'lost', 1)`, trigger),
		"unknown error class":     fmt.Sprintf(`INSERT INTO deliveries (message_id, part, seq, state, updated_at, error_class) VALUES (%d, 0, 1, 'failed', 1, 'odd')`, trigger),

		"unknown kind of turn":             turnOf("odd", trigger, ", state", ", 'queued'"),
		"a turn of a missing row":          turnOf("delegated", 4711, ", state", ", 'queued'"),
		"unknown state of a turn":          turn(", state", ", 'lost'"),
		"running without a run":            turn(", state", ", 'running'"),
		"a run that does not exist":        turn(", state, run_id", ", 'running', 4711"),
		"done and not ended":               turn(", state", ", 'done'"),
		"ended and queued":                 turn(", state, ended_at", ", 'queued', 1"),
		"a root that does not exist":       turn(", state, root_turn_id", ", 'queued', 4711"),
		"two live runs of a topic":         `INSERT INTO runs (folder, topic, chat_jid, runtime, started_at) VALUES ('acme', '', 'b:2', 'process', 1)`,
		"a run that has ended but is open": `INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, ended_at) VALUES ('acme', 'x', 'a:1', 'process', 1, 2)`,
		"two log entries of a run":         fmt.Sprintf(`INSERT INTO session_log (run_id, started_at, folder, topic) VALUES (%d, 1, 'acme', '')`, live.ID),
		"a line of a missing turn":         `INSERT INTO system_messages (folder, origin, event, turn_id, created_at) VALUES ('acme', 'x', 'y', 4711, 1)`,
		"unknown kind of chat":             `INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES ('a:1', 'a', 'odd', 1)`,
		"a chat row without a platform":    `INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES ('a', 'a', 'dm', 1)`,
		"a config that is not JSON":        `INSERT INTO registered_groups (folder, created_at, config) VALUES ('acme', 1, 'x')`,
		"engaged without a group":          `INSERT INTO chat_reply_state (jid, topic, engaged_until) VALUES ('a:1', '', 1)`,
		"engaged for ever":                 `INSERT INTO chat_reply_state (jid, topic, engaged_folder) VALUES ('a:1', '', 'acme')`,
		"approved for no group":            `INSERT INTO onboarding_requests (code, chat_jid, state, decided_at, created_at) VALUES ('A', 'a:1', 'approved', 1, 1)`,
		"pending and decided":              `INSERT INTO onboarding_requests (code, chat_jid, state, decided_at, created_at) VALUES ('A', 'a:1', 'pending', 1, 1)`,
		"a reminder without a due time":    `INSERT INTO reminders (folder, chat_jid, kind, body, state, created_at, updated_at) VALUES ('a', 'a:1', 'text', 'x', 'active', 1, 1)`,
		"a reminder due in two ways":       `INSERT INTO reminders (folder, chat_jid, kind, body, state, due_at, cron, created_at, updated_at) VALUES ('a', 'a:1', 'text', 'x', 'active', 1, '* * * * *', 1, 1)`,
		"a closed poll without a time":     fmt.Sprintf(`INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at) VALUES (%d, 'a', 'a:1', 'q', '[]', 'closed', 1)`, trigger),
		"unknown connection":               `INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES ('x', 1, 1, 'odd')`,

		"a disposition without a reason": `UPDATE messages SET reason = NULL WHERE disposition IS NOT NULL`,
		"deleting a referenced run":      fmt.Sprintf(`DELETE FROM runs WHERE id = %d`, live.ID),
	}
	undo := fmt.Errorf("undone")
	for _, query := range legal {
		if err := s.Write(t.Context(), func(tx *store.Tx) error {
			if err := tx.Exec(query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
			return undo
		}); err != undo {
			t.Error(err)
		}
	}
	for name, query := range illegal {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			if err := tx.Exec(query); err != nil {
				return err
			}
			return undo
		})
		if err == undo {
			t.Errorf("%s: accepted", name)
		}
		if strings.HasPrefix(err.Error(), "prepare") && name != "a platform by hand" {
			t.Errorf("%s: not refused by a constraint: %v", name, err)
		}
	}
}
