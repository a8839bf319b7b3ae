package main

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/store/storetest"
)

// auditRows are what the changes of TestAudit_EachChange_IsARow are made to.
var auditRows = []string{
	`INSERT INTO registered_groups (folder, name, created_at) VALUES ('main', '', 0)`,
	`INSERT INTO routes (match, target) VALUES ('chat_jid=telegram:-1', 'main')`,
	`INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES ('telegram:-1', 'telegram', 'group', 'Ops', 1)`,
	`INSERT INTO messages (id, chat_jid, direction, content, timestamp, received_at, out_state) VALUES (1, 'telegram:-1', 'out', 'one', 1, 1, 'failed'),
		(2, 'telegram:-1', 'out', 'two', 1, 1, 'failed'), (3, 'telegram:-1', 'out', 'three', 1, 1, 'sent')`,
	`INSERT INTO messages (id, chat_jid, platform_id, direction, content, timestamp, received_at, disposition, reason, routed_to, decided_at, decision_seq, turn_id)
		VALUES (4, 'telegram:-1', 'p4', 'in', 'x', 1, 1, 'routed', 'route', 'main', 1, 1, 1), (5, 'telegram:-1', 'p5', 'in', 'x', 1, 1, 'routed', 'route', 'main', 1, 2, 2)`,
	`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, ended_at, not_before)
		VALUES (1, 'conversation', 'main', 'telegram:-1', '#a', 4, 'x', 100, 'failed', 1, 1, 0), (2, 'conversation', 'main', 'telegram:-1', '#b', 5, 'x', 100, 'queued', 1, NULL, 4000000000000)`,
	`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at, undone_at)
		VALUES (3, 'conversation', 'main', 'telegram:-1', '#c', 4, 'x', 100, 'done', 1, 1, 1, NULL), (4, 'conversation', 'main', 'telegram:-1', '#d', 4, 'x', 100, 'done', 1, 1, 1, 2)`,
	`INSERT INTO reminders (id, folder, chat_jid, kind, body, cron, state, next_slot, created_by, created_at, updated_at)
		VALUES (1, 'main', 'telegram:-1', 'text', 'stand up', '0 9 * * *', 'active', 4000000000000, 'agent:main', 1, 1)`,
	`INSERT INTO polls (id, message_id, folder, chat_jid, question, options, state, created_at) VALUES (1, 3, 'main', 'telegram:-1', 'tea?', '["yes","no"]', 'open', 1)`,
	`INSERT INTO cursors (daemon, key, value) VALUES ('gated', 'operator:telegram:7', '{}')`,
	`INSERT INTO permission_rules (folder, chat_jid, payload_hash, text_hash, text, author, created_at) VALUES ('main', 'telegram:-1', 'h', 't', '?', 'telegram:7', 1)`,
	`INSERT INTO asks (id, turn_id, ask_id, message_id, question, options, payload_hash, who, state, created_at, expires_at)
		VALUES (1, 1, 'budget', 3, 'More?', '["Raise it","No"]', '', '{}', 'open', 1, 4000000000000)`,
}

// TestAudit_EachChange_IsARow makes each change that the API offers: it fails for a new endpoint that is not in the table.
func TestAudit_EachChange_IsARow(t *testing.T) {
	g := startGated(t, &syncBuffer{})
	t.Cleanup(g.Close)
	t.Cleanup(func() { // the retried turn has begun
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = g.agents.Run(ended)
	})
	path := filepath.Join(g.cfg.Data, "arizuko.db")
	db := storetest.Must(sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=10000"))(t)
	t.Cleanup(func() { db.Close() })
	for _, query := range auditRows {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err, query)
		}
	}
	seen := map[string]bool{}
	for _, change := range []struct {
		endpoint, path, body string
		want                 []string // rows of the audit; none: nothing is changed
	}{
		{"POST /v1/turns/{id}/cancel", "/v1/turns/2/cancel", "", []string{"web:op: cancel turn: 2 of main in telegram:-1"}},
		{"POST /v1/turns/{id}/undo", "/v1/turns/3/undo", "", []string{"web:op: undo turn: 3 of main in telegram:-1"}},
		{"POST /v1/turns/{id}/redo", "/v1/turns/4/redo", "", []string{"web:op: redo turn: 4 of main in telegram:-1"}},
		{"POST /v1/messages/{id}/replay", "/v1/messages/1/replay", "", []string{"web:op: replay: message 1 as 6"}},
		{"POST /v1/messages/replay", "/v1/messages/replay", `{"ids":[1,2]}`, []string{"web:op: replay: 1 messages: 2"}},
		{"POST /v1/messages/replay", "/v1/messages/replay", `{"ids":[1,2]}`, nil}, // both have a copy
		{"POST /v1/polls/{id}/close", "/v1/polls/1/close", "", []string{"web:op: close poll: 1 of main in telegram:-1"}},
		{"POST /v1/asks/{id}/answer", "/v1/asks/1/answer", `{"option":2}`, []string{"web:op: answer question: 1 of turn 1 of main in telegram:-1: No"}},
		{"POST /v1/reminders/{id}/cancel", "/v1/reminders/1/cancel", `{"by":"web:op"}`, []string{"web:op: cancel reminder: 1 of main in telegram:-1"}},
		{"POST /v1/broadcasts", "/v1/broadcasts", `{"chats":["telegram:-1"],"text":"down at 5","by":"web:op","key":"k"}`, []string{"web:op: broadcast: 1 chats: down at 5"}},
		{"POST /v1/operators/code", "/v1/operators/code", "", []string{"web:op: new operator code: "}},
		{"POST /v1/operators/remove", "/v1/operators/remove", `{"sender":"telegram:7"}`, []string{"web:op: remove operator: telegram:7"}},
		{"POST /v1/egress/rules", "/v1/egress/rules", `{"host":"example.com","action":"deny"}`, []string{"web:op: add egress rule: 33: example.com → deny"}},
		{"POST /v1/egress/questions", "/v1/egress/questions", `{"Receipt":1,"Turn":1}`, nil}, // its rows are those of asks
		{"POST /v1/egress/test", "/v1/egress/test", `{"host":"x","action":"pass"}`, nil},
		{"DELETE /v1/egress/rules/{id}", "/v1/egress/rules/33", "", []string{"web:op: remove egress rule: 33: example.com → deny"}},
		{"DELETE /v1/permissions/{id}", "/v1/permissions/1", "", []string{"web:op: revoke rule: 1 of main, made by telegram:7"}},
		// The last one: its run stores messages, whose ids the changes above would see.
		{"POST /v1/turns/{id}/retry", "/v1/turns/1/retry", "", []string{"web:op: retry turn: 1 of main in telegram:-1"}},
	} {
		method, _, _ := strings.Cut(change.endpoint, " ")
		seen[change.endpoint] = true
		before := len(storetest.Audit(t, path))
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, change.path, strings.NewReader(change.body))
		r.Header.Set("Authorization", "Bearer "+g.Secret)
		r.Header.Set("Arizuko-By", "web:op")
		g.Router.ServeHTTP(w, r)
		if w.Code > 299 {
			t.Errorf("%s %s: %d %s", method, change.path, w.Code, w.Body)
		}
		rows := storetest.Audit(t, path)[before:]
		if diff := cmp.Diff(change.want, append([]string(nil), rows...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", change.endpoint, diff)
		}
	}
	err := chi.Walk(g.Router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet && method != http.MethodHead && !seen[method+" "+pattern] {
			t.Errorf("%s %s has no entry: which row of the audit does it write?", method, pattern)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
