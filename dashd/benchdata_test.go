package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// benchData writes the database of the benchmark of pages.
type benchData struct {
	b     *testing.B
	path  string
	db    *sql.DB
	words []string  // the most frequent first
	start time.Time // of the first message; one came each second, the last one now
}

func newBenchData(b *testing.B, path string) *benchData {
	b.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_synchronous=OFF&_busy_timeout=10000")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { db.Close() })
	d := &benchData{b: b, path: path, db: db, start: time.Now().Add(-time.Duration(*benchMessages) * time.Second)}
	random := rand.New(rand.NewPCG(3, 4))
	for range 60_000 {
		word := make([]byte, 2+random.IntN(9))
		for i := range word {
			word[i] = byte('a' + random.IntN(26))
		}
		d.words = append(d.words, string(word))
	}
	return d
}

func (d *benchData) exec(query string, args ...any) {
	d.b.Helper()
	if _, err := d.db.Exec(query, args...); err != nil {
		d.b.Fatal(err, query)
	}
}

func (d *benchData) get(value any, query string) {
	d.b.Helper()
	if err := d.db.QueryRow(query).Scan(value); err != nil {
		d.b.Fatal(err, query)
	}
}

// count is a table n of the numbers from 1 to ?1.
const count = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `

// waiting is how many things wait of each kind.
const waiting = 10_000

// write stores the rows.
func (d *benchData) write() {
	d.b.Helper()
	at, now := d.start.UnixMilli(), time.Now().UnixMilli()
	d.exec(`BEGIN`)
	d.exec(`DELETE FROM registered_groups`)
	d.exec(count+`INSERT INTO registered_groups (folder, name, created_at, config) SELECT 'group' || (i - 1), 'Group ' || i, i, CASE i WHEN 1 THEN '{"hooks":{"ci":{"id":"k3q5v7x2m4n6p8r1","kind":"github"}}}' ELSE '{"rate":20}' END FROM n`, 1000)
	d.exec(count+`INSERT INTO chats (jid, platform, kind, title, last_seen_at) SELECT iif(i % 5, 'telegram', 'discord') || ':-' || (i - 1), iif(i % 5, 'telegram', 'discord'), 'group', 'Room ' || i, ?2 + i FROM n`, 20_000, at)
	d.exec(`INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES ('web:group0', 'web', 'web', '', ?)`, at)
	d.exec(count+`INSERT INTO routes (seq, match, target, impulse_config) SELECT i / 100, iif(i % 20, 'chat_jid=telegram:-' || i, 'verb=mention sender=telegram:' || i),
		'group' || (i % 1000) || iif(i % 7, '', '#observe'), iif(i % 9, NULL, '{"quiet_ms":3000}') FROM n`, 2000)
	d.messages(at)
	d.exec(count+`INSERT INTO messages (chat_jid, platform_id, direction, sender, content, timestamp, received_at)
		SELECT 'telegram:-' || (i % 300), 'w' || i, 'in', 'telegram:42', 'waits', ?2, ?2 FROM n`, waiting, now)
	d.exec(count+`INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, out_state)
		SELECT 'telegram:-' || (i % 300), 'out', 'waits', ?2, ?2, 'queued' FROM n`, waiting, now)
	d.exec(count+`INSERT INTO messages (chat_jid, platform_id, direction, sender, content, timestamp, received_at, disposition, reason, decided_at, decision_seq)
		SELECT 'telegram:-' || (90000 + i % 300), 'p' || i, 'in', 'telegram:42', 'let me in', ?2, ?2, 'onboarding', 'onboarding', ?2, ?2 + i FROM n`, waiting, now)
	d.exec(count+`INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at)
		SELECT 'conversation', 'group' || (i % 300), 'telegram:-' || (i % 300), '', i, 'telegram-group', 4000, 'queued', ?2 FROM n`, waiting, now)
	d.exec(count+`INSERT INTO onboarding_requests (code, chat_jid, sender, title, sample, state, created_at)
		SELECT printf('AAAA-%05d', i), 'telegram:-' || (90000 + i), 'telegram:42', 'A room', 'let me in', 'pending', ?2 + i FROM n`, waiting, at)
	d.exec(count+`INSERT INTO onboarding_requests (code, chat_jid, sender, title, sample, state, decided_at, decided_by, created_at)
		SELECT printf('BBBB-%05d', i), 'telegram:-' || (90000 + i), 'telegram:42', 'A room', 'let me in', 'rejected', ?2 + i, 'web:operator', ?2 + i FROM n`, 5000, at)
	d.exec(count+`INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) SELECT 'telegram:-' || i, '', ?2 + 3600000 + i, 'group' || (i % 1000), ?2 FROM n`, waiting, now)
	d.exec(count+`INSERT INTO sessions (group_folder, topic, session_id, updated_at) SELECT 'group0', '#t' || i, 'session-' || i, ?2 FROM n`, waiting, now)
	d.exec(count+`INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) SELECT 'group' || (i % 1000), '', 'telegram:-1', 'process', ?2, ?2, ?2 FROM n`, 100_000, at)
	// 1000 chats on each of 30 days.
	d.exec(count+`INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
		SELECT date('now', -(i % 30) || ' days'), 'group' || (i % 300), 'telegram:-' || (i / 30), 1 + i % 9, i, i / 9, i / 1000.0 FROM n`, 30_000)
	d.exec(`INSERT INTO session_log (run_id, started_at, ended_at, folder, topic, result) SELECT id, started_at, ended_at, folder, topic, 'ok' FROM runs`)
	d.exec(`UPDATE turns SET run_id = id % 100000 + 1 WHERE started_at IS NOT NULL`)
	d.exec(count+`INSERT INTO reminders (folder, chat_jid, kind, body, due_at, next_slot, state, created_at, updated_at)
		SELECT 'group' || (i % 10), 'telegram:-' || (i % 10), 'text', 'stand up', ?2 + i, ?2 + i, 'active', ?2, ?2 FROM n`, waiting, now)
	d.exec(`INSERT INTO reminder_slots (reminder_id, slot) SELECT id, created_at FROM reminders`)
	d.exec(count+`INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at) SELECT i, 'group1', 'telegram:-1', 'tea?', '["yes","no"]', 'open', ?2 FROM n`, waiting, now)
	d.exec(count+`INSERT INTO poll_votes (poll_id, voter, options, at) SELECT i % 500 + 1, 'telegram:' || i, '[0]', ?2 FROM n`, 50_000, now)
	d.exec(count+`INSERT INTO audit (at, who, what, detail) SELECT ?2 + i, iif(i % 3, 'cli', 'web:operator'), iif(i % 4, 'change route', 'approve'), i || ': order 0, everything to group1' FROM n`, 50_000, at)
	d.exec(`INSERT INTO audit (at, who, what) VALUES (5, 'rare', 'approve')`)
	d.exec(`COMMIT`)
}

// messages stores the messages: of ten, one is dropped, four are observed, and five are a message with its turn and its answer.
// Every other pair is in one of 500 busy chats, a tenth in four web chats, the others in 20,000.
func (d *benchData) messages(start int64) {
	d.b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 3, uint64(len(d.words)-1))
	w := benchWriter{
		b: d.b,
		message: d.prepare(`INSERT INTO messages (id, chat_jid, platform_id, direction, sender, sender_name, topic, content, timestamp, received_at, source,
			disposition, reason, routed_to, decided_at, decision_seq, turn_id, out_state) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`),
		part: d.prepare(`INSERT INTO deliveries (message_id, part, state, attempts, platform_id, error_class, updated_at) VALUES (?,0,?,1,?,?,?)`),
		turn: d.prepare(`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, reason, created_at, started_at, ended_at)
			VALUES (?, 'conversation', ?, ?, '', ?, 'telegram-group', 4000, ?, 'answered', ?, ?, ?)`),
	}
	for id := int64(1); id <= int64(*benchMessages); id++ {
		text := make([]string, 3+random.IntN(22))
		for i := range text {
			text[i] = d.words[zipf.Uint64()]
		}
		pair := (id - 1) / 2
		number := pair % 500
		if pair%2 == 1 {
			number = pair % 20_000
		}
		r := benchRow{chat: fmt.Sprintf("telegram:-%d", number), folder: fmt.Sprintf("group%d", number%1000), id: id, at: start + id*1000}
		if pair%10 == 3 {
			r.folder = fmt.Sprintf("group%d", pair%4)
			r.chat, r.topic = "web:"+r.folder, []string{"", "#t1", "#t2"}[pair/10%3]
		}
		r.content, r.sender = strings.Join(text, " "), fmt.Sprintf("telegram:%d", random.IntN(5000))
		w.insert(&r)
	}
}

func (d *benchData) prepare(query string) *sql.Stmt {
	d.b.Helper()
	stmt, err := d.db.Prepare(query)
	if err != nil {
		d.b.Fatal(err)
	}
	d.b.Cleanup(func() { stmt.Close() })
	return stmt
}

type benchWriter struct {
	b                   *testing.B
	message, part, turn *sql.Stmt
}

func (w *benchWriter) do(stmt *sql.Stmt, args ...any) {
	w.b.Helper()
	if _, err := stmt.Exec(args...); err != nil {
		w.b.Fatal(err)
	}
}

type benchRow struct {
	id, at                               int64
	chat, folder, topic, content, sender string
}

func (w *benchWriter) insert(r *benchRow) {
	if r.id%2 == 0 && r.id%10 < 6 { // an answer to the message before
		state, class := "sent", any(nil)
		if r.id%100 == 0 {
			state, class = "failed", "permanent"
		}
		id := fmt.Sprintf("o%d", r.id)
		w.do(w.message, r.id, r.chat, id, "out", "agent:"+r.folder, "", r.topic, r.content, r.at, r.at, "agent", nil, nil, nil, nil, nil, r.id-1, state)
		w.do(w.part, r.id, state, id, class, r.at)
		return
	}
	disposition, reason, folder, turnID := "observed", "route_observe", any(r.folder), any(nil)
	switch {
	case r.id%10 == 9:
		disposition, reason, folder = "dropped", "no_route", nil
	case r.id%2 == 1 && r.id%10 < 6:
		disposition, reason, turnID = "routed", "route", r.id
		state := "done"
		if r.id%999 == 0 {
			state = "failed"
		}
		w.do(w.turn, r.id, r.folder, r.chat, r.id, state, r.at, r.at, r.at+900)
	}
	w.do(w.message, r.id, r.chat, fmt.Sprint(r.id), "in", r.sender, "User", r.topic, r.content, r.at, r.at, "teled", disposition, reason, folder, r.at, r.id, turnID, nil)
}

// files makes a folder of a group with many files, and a log of a run.
func (d *benchData) files(data string) {
	d.b.Helper()
	many := filepath.Join(data, "groups", "group0", "many")
	logs := filepath.Join(data, "logs", "group1")
	for _, dir := range []string{many, logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			d.b.Fatal(err)
		}
	}
	for i := range waiting {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("file-%05d.txt", i)), nil, 0o600); err != nil {
			d.b.Fatal(err)
		}
	}
	text := []byte(strings.Repeat("what a tool printed, again and again, in a line of a log\n", 200_000))
	if err := os.WriteFile(filepath.Join(logs, "run-1.log"), text, 0o600); err != nil {
		d.b.Fatal(err)
	}
}

// stubDaemons answer what the pages ask of the other daemons, at once.
func stubDaemons(b *testing.B) (environ []string) {
	b.Helper()
	answer := routeapi.Answer{Action: routeapi.Trigger, Folder: "group7", Home: "group7", Reason: msg.ReasonRoute, Trace: []string{"route 7"}}
	return peers(b, func(w http.ResponseWriter, r *http.Request) {
		var reply any = map[string]any{"requests": []any{}}
		switch r.URL.Path {
		case routeapi.AccessPath:
			reply = routeapi.Access{ChatJID: "telegram:-7", Sender: "telegram:42", Rows: []routeapi.RowAccess{{Verb: "message", Answer: answer, Admitted: true}}}
		case routeapi.TestPath:
			var test routeapi.Test
			if err := json.NewDecoder(r.Body).Decode(&test); err != nil {
				b.Error(err)
			}
			tested := routeapi.Tested{Problems: []routeapi.Problem{}}
			for _, item := range test.Items {
				tested.Items = append(tested.Items, routeapi.TestedItem{ID: item.ID, Present: answer, Edited: answer})
			}
			reply = tested
			if test.Items == nil {
				reply = map[string]any{"answer": answer, "trace": answer.Trace}
			}
		}
		if err := json.NewEncoder(w).Encode(reply); err != nil {
			b.Error(err)
		}
	})
}
