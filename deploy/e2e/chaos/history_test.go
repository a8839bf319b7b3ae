package main

import (
	"database/sql"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/store/storetest"
)

// database opens a migrated database with rows. Turns and messages reference each other, so foreign
// keys are off.
func database(t *testing.T, rows string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+storetest.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(rows); err != nil {
		t.Fatal(err)
	}
	return db
}

// oneOfEach has a row of each kind that readHistory reads.
const oneOfEach = `
INSERT INTO messages (id, chat_jid, platform_id, direction, source, content, timestamp, received_at, reply_to_id, derived_from,
	routed_to, disposition, reason, decided_at, decision_seq, turn_id, out_state) VALUES
	(1, 'telegram:101', 'p1', 'in', 'teled', 'm1', 1, 100, NULL, NULL, 'main', 'routed', 'route', 1, 1, 1, NULL),
	(2, 'telegram:101', 'p2', 'in', 'teled', '@eng silent m2', 1, 200, NULL, NULL, NULL, 'prefix', 'prefix', 1, 2, NULL, NULL),
	(3, 'telegram:101', NULL, 'in', 'prefix', 'silent m2', 1, 200, NULL, 2, 'main/eng', 'routed', 'derived', 1, 3, 2, NULL),
	(4, 'telegram:101', 'p4', 'in', 'teled', '/ping m4', 1, 400, NULL, NULL, NULL, 'command', 'ping', 1, 4, NULL, NULL),
	(5, 'telegram:104', 'p5', 'in', 'teled', '#pinned', 1, 500, NULL, NULL, NULL, 'sticky', 'pin', 1, 5, NULL, NULL),
	(6, 'telegram:-201', 'p6', 'in', 'teled', 'm6', 1, 600, NULL, NULL, 'main', 'routed', 'route', 1, 6, 3, NULL),
	(7, 'telegram:-201', 'p7', 'in', 'teled', 'm7', 1, 700, NULL, NULL, 'main', 'routed', 'route', 1, 7, 3, NULL),
	(9, 'telegram:-201', NULL, 'in', 'prefix', 'm6 derived', 1, 600, NULL, 6, 'main', 'routed', 'derived', 1, 8, 3, NULL),
	(8, 'telegram:-202', 'p8', 'in', 'teled', 'm8', 1, 800, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(11, 'telegram:101', NULL, 'out', 'agent', 'You said: m1', 1, 1100, 'p1', NULL, NULL, NULL, NULL, NULL, NULL, 1, 'sent'),
	(12, 'telegram:101', NULL, 'out', 'command', 'You said: m4', 1, 1100, 'p4', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'sent'),
	(13, 'telegram:-201', NULL, 'out', 'agent', '2/3 You said: m6' || char(10) || 'You said: m7' || char(10) || '(You said: so)', 1, 1200, NULL, NULL,
		NULL, NULL, NULL, NULL, NULL, 3, 'sending'),
	(14, 'telegram:-201', NULL, 'out', 'agent', 'too late', 1, 5000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, 'sent'),
	(15, 'telegram:-201', NULL, 'out', 'notice', 'a notice', 1, 1200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, 'sent');

INSERT INTO turns (id, kind, folder, chat_jid, topic, place, trigger_message_id, claims_engagement, surface, ceiling, state,
	reason, frames, created_at, ended_at) VALUES
	(1, 'conversation', 'main', 'telegram:101', '', '', 1, 0, 'dm', 1, 'done', 'answered', 1, 1, 1150),
	(2, 'conversation', 'main/eng', 'telegram:101', '', '', 3, 0, 'dm', 1, 'done', 'silent', 0, 1, 1150),
	(3, 'conversation', 'main', 'telegram:-201', '', 'p', 6, 1, 'group', 1, 'done', 'answered', 3, 1, 1250);

INSERT INTO deliveries (message_id, part, state, error, error_class, updated_at, platform_id) VALUES
	(13, 1, 'ambiguous', 'no answer', 'ambiguous', 2001, NULL), (13, 0, 'sent', NULL, NULL, 2000, NULL),
	(11, 0, 'sent', NULL, NULL, 2002, 'b11'), (14, 0, 'sent', NULL, NULL, 2003, NULL), (15, 0, 'sent', NULL, NULL, 2004, NULL), (12, 0, 'sent', NULL, NULL, 2005, NULL);

INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, ended_at) VALUES
	('telegram:-201', 'p', 4000, 'main', NULL), ('telegram:104', '', NULL, NULL, 510);
`

func TestReadHistory_OneOfEach_IsRead(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "a.txt"), []byte("stored"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := database(t, oneOfEach+`UPDATE messages SET attachments = '[{"path":"a.txt"},{"error":"503"}]' WHERE id = 1`)
	h, err := readHistory(db, data)
	if err != nil {
		t.Fatal(err)
	}
	group := "telegram:-201"
	m1 := row{id: 1, turn: 1, chat: chat, content: "m1", disposition: "routed", platformID: "p1", files: []file{{Path: "a.txt", content: "stored"}, {Error: "503"}}}
	m2 := row{id: 2, chat: chat, content: "@eng silent m2", disposition: "prefix", platformID: "p2"}
	m4 := row{id: 4, chat: chat, content: "/ping m4", disposition: "command", platformID: "p4"}
	m5 := row{id: 5, chat: "telegram:104", content: "#pinned", disposition: "sticky", platformID: "p5"}
	m6 := row{id: 6, turn: 3, chat: group, content: "m6", disposition: "routed", platformID: "p6"}
	m7 := row{id: 7, turn: 3, chat: group, content: "m7", disposition: "routed", platformID: "p7"}
	m8 := row{id: 8, chat: "telegram:-202", content: "m8", platformID: "p8"}
	of := func(p part, at int64) delivery {
		return delivery{part: p, lane: lane{chat: group}, kind: "message", state: "sent", at: at, calledAt: 600, folder: "main", place: "p"}
	}
	first, second := of(part{13, 0}, 2000), of(part{13, 1}, 2001)
	first.claims, second.claims = true, true
	second.state, second.sendError = "ambiguous", "no answer"
	want := &history{
		data: data,
		stored: map[key][]row{
			{chat, "m1"}: {m1}, {chat, "@eng silent m2"}: {m2}, {chat, "/ping m4"}: {m4}, {"telegram:104", "#pinned"}: {m5},
			{group, "m6"}: {m6}, {group, "m7"}: {m7}, {"telegram:-202", "m8"}: {m8},
		},
		derived: map[int64]row{2: {id: 3, turn: 2, derivedFrom: 2, chat: chat, content: "silent m2", disposition: "routed"},
			6: {id: 9, turn: 3, derivedFrom: 6, chat: group, content: "m6 derived", disposition: "routed"}},
		answers: map[key]map[int64]bool{{chat, "m1"}: {1: true}, {group, "m6"}: {3: true}, {group, "m7"}: {3: true}},
		replies: map[key]int{{chat, "p4"}: 1},
		turns: map[int64]turn{
			1: {reason: "answered", frames: 1, last: "m1"}, 2: {reason: "silent", last: "silent m2"}, 3: {reason: "answered", frames: 3, last: "m7"},
		},
		content: map[int64]string{
			11: "You said: m1", 12: "You said: m4", 13: "2/3 You said: m6\nYou said: m7\n(You said: so)", 14: "too late", 15: "a notice",
		},
		deliveries: []delivery{
			{part: part{11, 0}, lane: lane{chat: chat}, kind: "message", id: "b11", state: "sent", at: 2002, calledAt: 100, folder: "main"},
			{part: part{12, 0}, lane: lane{chat: chat}, kind: "message", state: "sent", at: 2005},
			first, second, of(part{14, 0}, 2003), of(part{15, 0}, 2004),
		},
		windows:  map[[2]string]window{{group, "p"}: {folder: "main", until: 4000}, {"telegram:104", ""}: {ended: 510}},
		pinned:   map[string]bool{"telegram:104": true},
		lastCall: map[[2]string]call{{group, "p"}: {"main", 600}},
	}
	everything := cmp.AllowUnexported(history{}, key{}, row{}, file{}, turn{}, part{}, lane{}, delivery{}, window{}, call{})
	if diff := cmp.Diff(want, h, everything); diff != "" {
		t.Error(diff)
	}
}

func TestReadHistory_LastCall_IsLatestMessage(t *testing.T) {
	const turns = `INSERT INTO turns (id, kind, folder, chat_jid, topic, place, trigger_message_id, claims_engagement, surface, ceiling,
		state, created_at) VALUES `
	for name, tc := range map[string]struct {
		turns string
		want  call
	}{
		"in order": {`(1, 'conversation', 'main', 'telegram:1', '', 'p', 1, 1, 'group', 1, 'queued', 1),
			(2, 'conversation', 'second', 'telegram:1', '', 'p', 2, 1, 'group', 1, 'queued', 1)`, call{"second", 200}},
		"older message in a later turn": {`(1, 'conversation', 'second', 'telegram:1', '', 'p', 2, 1, 'group', 1, 'queued', 1),
			(2, 'conversation', 'main', 'telegram:1', '', 'p', 1, 1, 'group', 1, 'queued', 1)`, call{"second", 200}},
		"two turns of one message": {`(1, 'conversation', 'main', 'telegram:1', '', 'p', 2, 1, 'group', 1, 'queued', 1),
			(2, 'conversation', 'second', 'telegram:1', '', 'p', 2, 1, 'group', 1, 'queued', 1)`, call{"second", 200}},
		"last claims nothing": {`(1, 'conversation', 'main', 'telegram:1', '', 'p', 1, 1, 'group', 1, 'queued', 1),
			(2, 'conversation', 'second', 'telegram:1', '', 'p', 2, 0, 'group', 1, 'queued', 1)`, call{"main", 100}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := readHistory(database(t, `INSERT INTO messages (id, chat_jid, direction, timestamp, received_at)
				VALUES (1, 'telegram:1', 'in', 1, 100), (2, 'telegram:1', 'in', 1, 200); `+turns+tc.turns), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if got := h.lastCall[[2]string{"telegram:1", "p"}]; got != tc.want {
				t.Errorf("last call %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEchoLine_MatchesWholeLines(t *testing.T) {
	for content, want := range map[string][]string{
		"You said: m1":                         {"m1"},
		"3/3 You said: slow 0.07 m1":           {"slow 0.07 m1"},
		"You said: m1\nYou said: m2\n(turn 3)": {"m1", "m2"},
		"2/3 You said: m1\nYou said: m2":       {"m1", "m2"},
		"They: You said: m1":                   nil,
		"3/ You said: m1":                      nil,
	} {
		h := &history{content: map[int64]string{}, answers: map[key]map[int64]bool{}}
		h.addOutbound(row{id: 1, turn: 4, chat: chat, content: content}, "agent", "")
		all := map[key]map[int64]bool{}
		for _, text := range want {
			all[key{chat, text}] = map[int64]bool{4: true}
		}
		if diff := cmp.Diff(all, h.answers, cmp.AllowUnexported(key{})); diff != "" {
			t.Errorf("%q: %s", content, diff)
		}
	}
}

// oneAnswer has the rows of one message, answered in one turn.
const oneAnswer = `
INSERT INTO runs (id, folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES (1, 'main', '', 'telegram:101', 'demo', 1, 2, 3);
INSERT INTO messages (id, chat_jid, platform_id, direction, source, content, timestamp, received_at,
	routed_to, disposition, reason, decided_at, decision_seq, turn_id, out_state) VALUES
	(1, 'telegram:101', '1', 'in', 'teled', 'm1', 1, 100, 'main', 'routed', 'route', 1, 1, 1, NULL),
	(2, 'telegram:101', NULL, 'out', 'agent', 'You said: m1', 1, 100, NULL, NULL, NULL, NULL, NULL, 1, 'sent');
INSERT INTO turns (id, run_id, kind, folder, chat_jid, topic, trigger_message_id, claims_engagement, surface, ceiling, state,
	reason, frames, created_at, started_at, ended_at) VALUES
	(1, 1, 'conversation', 'main', 'telegram:101', '', 1, 1, 'dm', 1, 'done', 'answered', 1, 1, 1, 200);
INSERT INTO deliveries (message_id, part, state, updated_at, platform_id) VALUES (2, 0, 'sent', 1000, 'b2');
INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder) VALUES ('telegram:101', '', 3000, 'main');
`

func TestLoadedInstance_Check(t *testing.T) {
	for name, tc := range map[string]struct {
		update string
		change func(*loadedInstance)
		skip   func(invariants.Invariant) bool
		want   counts
	}{
		"ok": {skip: none},
		"two rows violate an invariant": {skip: none, want: counts{invariants.Stuck: 2},
			update: `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('telegram:9', 'in', 1, 1), ('telegram:9', 'in', 1, 1)`},
		"agent runs": {skip: none, want: counts{invariants.Stuck: 1},
			update: `UPDATE runs SET ended_at = NULL`},
		"agent runs, allowed": {skip: allowedWhileRunning,
			update: `UPDATE runs SET ended_at = NULL`},
		"message without row": {skip: none, want: counts{invariants.Lost: 1},
			change: func(l *loadedInstance) { l.load.all = append(l.load.all, sentMessage{chat, "m2", "m2", true, ""}) }},
		"arrival without row": {skip: none, want: counts{invariants.Doubled: 1},
			change: func(l *loadedInstance) {
				p := l.platforms[0].(*receivedPlatform)
				p.all = append(p.all, chatsim.Arrival{ID: "9", Chat: chat})
			}},
		"a preview is left": {skip: none, want: counts{invariants.Stuck: 1},
			change: leavePreview},
		"a preview is left, and counted": {skip: none,
			update: `INSERT INTO previews (turn_id, chat_jid, state, created_at, updated_at) VALUES (1, 'telegram:101', 'lost', 1, 1)`,
			change: leavePreview},
		"a preview is open": {skip: none, want: counts{invariants.Stuck: 1},
			update: `INSERT INTO previews (turn_id, chat_jid, state, created_at, updated_at) VALUES (1, 'telegram:101', 'open', 1, 1)`},
		"window too short": {skip: none, want: counts{invariants.Lost: 1},
			update: `UPDATE chat_reply_state SET engaged_until = 2999`},
		"window too short, clock was set": {skip: none,
			update: `UPDATE chat_reply_state SET engaged_until = 2999`, change: func(l *loadedInstance) { l.clockSet = true }},
		"turn failed": {skip: none, want: counts{invariants.Lost: 1},
			update: failed},
		"turn failed, hostile": {skip: none,
			update: failed, change: func(l *loadedInstance) { l.load.hostile = true }},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loadedInstance{
				db: database(t, oneAnswer+tc.update), instance: &harness.Instance{Data: t.TempDir()}, load: &generator{all: []sentMessage{{chat, "m1", "m1", true, ""}}},
				platforms: []chatsim.Platform{&receivedPlatform{all: []chatsim.Arrival{{ID: "b2", Chat: chat, Text: "You said: m1"}}}},
			}
			if tc.change != nil {
				tc.change(l)
			}
			r, err := l.check(io.Discard, tc.skip)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(r.count, tc.want) || r.ok() != (len(tc.want) == 0) {
				t.Errorf("counted %v, ok %t, want %v", r.count, r.ok(), tc.want)
			}
		})
	}
}

func leavePreview(l *loadedInstance) {
	l.platforms[0].(*receivedPlatform).left = []chatsim.Arrival{{ID: "9", Chat: chat}}
}

// failed makes the turn fail after its answer, with a notice.
const failed = `UPDATE turns SET state = 'failed', reason = 'partial', claims_engagement = 0;
	UPDATE chat_reply_state SET engaged_folder = NULL, engaged_until = NULL;
	INSERT INTO messages (chat_jid, direction, source, content, timestamp, received_at, turn_id, out_state)
		VALUES ('telegram:101', 'out', 'notice', 'it failed', 1, 1, 1, 'ambiguous')`
