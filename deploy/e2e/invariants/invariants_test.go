package invariants

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/store/storetest"
)

// healthy has the rows of a healthy instance, with most cases that are close to violations: edit notes in
// a later turn, text after /new that overtakes, a failed turn with its notice in another group, and an
// answer that was cancelled before it was sent.
const healthy = `
INSERT INTO runs (id, folder, topic, chat_jid, runtime, pid, started_at, closed_at, ended_at) VALUES
	(1, 'main', '', 'telegram:1', 'demo', 11, 1000, 1900, 2000),
	(2, 'main', '', 'telegram:1', 'demo', 12, 2000, 2900, 3000),
	(3, 'main', '#side', 'telegram:1', 'demo', 13, 1000, 2900, 3000),
	(4, 'main/eng', '', 'telegram:1', 'demo', 14, 1000, 2900, 3000),
	(5, 'main', '#task', 'telegram:1', 'demo', 15, 1000, 2900, 3000),
	(6, 'main', '#task', 'telegram:1', 'demo', 16, 1000, 2900, 3000);

INSERT INTO messages (id, chat_jid, direction, source, verb, content, timestamp, received_at, thread_id, derived_from,
	forwarded_from, routed_to, disposition, reason, decided_at, decision_seq, turn_id, out_state) VALUES
	(1, 'telegram:1', 'in', 'telegram', 'message', 'one', 1, 1, '', NULL, NULL, 'main', 'routed', 'route', 1, 1, 1, NULL),
	(2, 'telegram:1', 'in', 'telegram', 'edit', 'one, corrected', 1, 1, '', NULL, NULL, 'main', 'observed', 'edit_note', 1, 2, 3, NULL),
	(3, 'telegram:1', 'in', 'telegram', 'message', 'two', 1, 1, '', NULL, NULL, 'main', 'routed', 'route', 1, 3, 2, NULL),
	(4, 'telegram:1', 'in', 'telegram', 'message', '@eng three', 1, 1, '', NULL, NULL, NULL, 'prefix', 'prefix', 1, 4, NULL, NULL),
	(5, 'telegram:1', 'in', 'prefix', 'message', 'three', 1, 1, '', 4, NULL, 'main/eng', 'routed', 'derived', 1, 5, 4, NULL),
	(6, 'telegram:1', 'in', 'telegram', 'message', 'four', 1, 1, '', NULL, NULL, 'main', 'routed', 'route', 1, 6, 3, NULL),
	(7, 'telegram:1', 'in', 'telegram', 'message', 'six', 1, 1, '', NULL, NULL, 'main', 'routed', 'route', 1, 7, 6, NULL),
	(8, 'telegram:1', 'in', 'telegram', 'message', '/new five', 1, 1, '', NULL, NULL, NULL, 'command', 'new', 1, 8, NULL, NULL),
	(9, 'telegram:1', 'in', 'command', 'message', 'five', 1, 1, '', 8, NULL, 'main', 'routed', 'derived', 1, 9, 5, NULL),
	(10, 'telegram:1', 'in', 'telegram', 'message', 'seven', 1, 1, '', NULL, NULL, 'main', 'observed', 'route', 1, 10, NULL, NULL),
	(11, 'telegram:1', 'in', 'telegram', 'message', '/ping', 1, 1, '', NULL, NULL, NULL, 'command', 'ping', 1, 11, NULL, NULL),
	(12, 'web:main', 'in', 'web', 'message', 'for routd', 1, 1, '', NULL, NULL, 'routd', 'routed', 'daemon', 1, 12, NULL, NULL),
	(13, 'internal:main', 'in', 'delegate', 'message', 'eight', 1, 1, '', NULL, '{"kind":"escalate","turn_id":1}', 'main', 'routed', 'route', 1, 13, 7, NULL),
	(14, 'internal:eng', 'in', 'delegate', 'message', 'it is so', 1, 1, '', NULL, '{"kind":"answer","turn_id":7}', 'main/eng', 'routed', 'route', 1, 14, 8, NULL),
	(15, 'internal:eng', 'in', 'delegate', 'message', 'nine', 1, 1, '', NULL, '{"kind":"escalate","turn_id":8}', 'main', 'routed', 'route', 1, 15, 9, NULL),
	(16, 'internal:eng', 'in', 'delegate', 'message', 'it failed', 1, 1, '', NULL, '{"kind":"answer","turn_id":9}', 'main/eng', 'routed', 'route', 1, 16, 10, NULL),
	(17, 'telegram:1', 'in', 'telegram', 'message', '#task ten', 1, 1, '', NULL, NULL, NULL, 'prefix', 'prefix', 1, 17, NULL, NULL),
	(18, 'telegram:1', 'in', 'telegram', 'message', 'eleven', 1, 1, '', NULL, NULL, 'main', 'routed', 'route', 1, 18, 12, NULL),
	(19, 'telegram:1', 'in', 'prefix', 'message', 'ten', 1, 1, '', 17, NULL, 'main', 'routed', 'derived', 1, 19, 11, NULL),
	(20, 'telegram:1', 'out', 'agent', 'message', 'said one', 1, 1, '7', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4, 'sent'),
	(21, 'telegram:1', 'out', 'agent', 'message', 'said one', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 'sent'),
	(22, 'telegram:1', 'out', 'agent', 'message', 'and so on', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 'sent'),
	(23, 'telegram:1', 'out', 'agent', 'message', 'said two', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, 'sent'),
	(24, 'telegram:1', 'out', 'tool', 'message', 'said two', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, 'cancelled'),
	(25, 'telegram:1', 'out', 'notice', 'message', 'it failed', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5, 'failed'),
	(26, 'telegram:1', 'out', 'agent', 'message', 'said six', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 6, 'cancelled'),
	(27, 'telegram:1', 'out', 'command', 'message', 'pong', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ambiguous'),
	(28, 'telegram:1', 'out', 'agent', 'message', 'said six again', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 6, 'sent'),
	(29, 'telegram:1', 'out', 'notice', 'message', 'it failed', 1, 1, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 11, 'failed');

INSERT INTO turns (id, run_id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, reason, frames,
	error, created_at, started_at, ended_at) VALUES
	(1, 1, 'conversation', 'main', 'telegram:1', '', 1, 'dm', 1, 'done', 'answered', 3, '', 1, 1100, 1500),
	(2, 2, 'conversation', 'main', 'telegram:1', '', 3, 'dm', 1, 'done', 'answered', 1, '', 1, 2100, 2300),
	(3, 2, 'conversation', 'main', 'telegram:1', '', 6, 'dm', 1, 'done', 'silent', 0, '', 1, 2200, 2400),
	(4, 4, 'conversation', 'main/eng', 'telegram:1', '', 5, 'dm', 1, 'done', 'answered', 1, '', 1, 1100, 2300),
	(5, 2, 'conversation', 'main', 'telegram:1', '', 9, 'dm', 1, 'failed', 'agent_error', 0, 'exit 1', 1, 1100, 2500),
	(6, NULL, 'conversation', 'main', 'telegram:1', '', 7, 'dm', 1, 'cancelled', 'cancelled', 2, '', 1, NULL, 2500),
	(7, 3, 'delegated', 'main', 'internal:main', '#side', 13, 'dm', 1, 'done', 'answered', 1, '', 1, 1100, 2300),
	(8, 4, 'delegated', 'main/eng', 'internal:eng', '', 14, 'dm', 1, 'done', 'silent', 0, '', 1, 2400, 2500),
	(9, 3, 'delegated', 'main', 'internal:eng', '#side', 15, 'dm', 1, 'failed', 'agent_error', 0, 'exit 1', 1, 2300, 2400),
	(10, 4, 'delegated', 'main/eng', 'internal:eng', '', 16, 'dm', 1, 'done', 'silent', 0, '', 1, 2500, 2600),
	(11, 5, 'conversation', 'main', 'telegram:1', '#task', 19, 'dm', 1, 'failed', 'agent_error', 0, 'exit 1', 1, 1100, 2500),
	(12, 6, 'conversation', 'main', 'telegram:1', '#task', 18, 'dm', 1, 'done', 'silent', 0, '', 1, 1200, 1300),
	(13, NULL, 'conversation', 'main', 'telegram:1', '#back', 10, 'dm', 1, 'cancelled', 'edit_applied', 0, '', 1, NULL, 1300);

INSERT INTO deliveries (message_id, part, state) VALUES (21, 0, 'sent'), (21, 1, 'sent'), (20, 0, 'sent'), (22, 0, 'sent'),
	(23, 0, 'sent'), (25, 0, 'failed'), (26, 0, 'cancelled'), (27, 0, 'ambiguous'), (28, 0, 'sent');
UPDATE deliveries SET attempts = 1 WHERE message_id = 28;

-- An answer does not wait for an older reaction.
INSERT INTO messages (id, chat_jid, direction, kind, source, content, timestamp, received_at, out_state) VALUES
	(40, 'telegram:2', 'out', 'reaction', 'tool', '👍', 1, 1, 'sent'), (41, 'telegram:2', 'out', 'message', 'tool', 'hi', 1, 1, 'sent');
INSERT INTO deliveries (message_id, part, state) VALUES (41, 0, 'sent'), (40, 0, 'sent');

INSERT INTO system_messages (folder, origin, event, created_at) VALUES ('main', 'gated', 'new-day', 1);
`

// askRow is a question that has ended, with the row that shows it and the edit of that.
const askRow = `INSERT INTO messages (id, chat_jid, direction, kind, source, content, timestamp, received_at, derived_from, out_state) VALUES
	(30, 'telegram:1', 'out', 'message', 'tool', 'which?', 1, 1, NULL, 'sent'), (31, 'telegram:1', 'out', 'edit', 'notice', 'ended', 1, 1, 30, 'sent');
	INSERT INTO deliveries (message_id, part, state) VALUES (30, 0, 'sent'), (31, 0, 'sent');
	INSERT INTO asks (turn_id, ask_id, message_id, question, options, state, created_at, expires_at, ended_at) VALUES (12, 'q', 30, 'which?', '["a","b"]', 'expired', 1, 2, 3);`

// violations are changes to the healthy rows that violate one invariant each.
var violations = []struct{ name, violation, sql string }{
	{"no turn", "a routed row has no turn",
		`UPDATE messages SET disposition = 'routed' WHERE id = 10`},
	{"no derived row", "a prefixed row does not have exactly one derived row",
		`UPDATE messages SET derived_from = NULL WHERE id = 5`},
	{"two derived rows", "a prefixed row does not have exactly one derived row",
		`UPDATE messages SET derived_from = 4 WHERE id = 6`},
	{"queued turn", "a turn has not ended",
		`UPDATE turns SET state = 'queued', ended_at = NULL WHERE id = 3`},
	{"running turn", "a turn has not ended",
		`UPDATE turns SET state = 'running', ended_at = NULL WHERE id = 3; UPDATE system_messages SET turn_id = 3`},
	{"no reason", "a turn ended without a reason",
		`UPDATE turns SET reason = '' WHERE id = 1`},
	{"failed without notice", "a failed turn has no notice",
		`UPDATE messages SET source = 'tool' WHERE id = 25`},
	{"failed without notice in another group", "a failed turn has no notice",
		`UPDATE messages SET forwarded_from = NULL WHERE id = 16`},
	{"no inbound row", "a turn has no inbound row",
		`UPDATE messages SET turn_id = NULL, disposition = 'observed' WHERE id = 1`},
	{"no answer", "an answered turn has no answer",
		`UPDATE turns SET reason = 'answered' WHERE id = 3`},
	{"no answer sent back", "an answered turn has no answer",
		`UPDATE messages SET forwarded_from = '{"kind":"delegate","turn_id":7}' WHERE id = 14`},
	{"taken into a turn of another run", "a turn was taken into one that has not ended as done, or into one of another place or run",
		`UPDATE turns SET reason = 'folded', answered_with = 1 WHERE id = 3`},
	{"taken into no turn", "a turn was taken into one that has not ended as done, or into one of another place or run",
		`UPDATE turns SET reason = 'folded' WHERE id = 3`},
	{"answered twice", "a turn that was answered with another one has an answer of its own",
		`UPDATE turns SET reason = 'folded', answered_with = 2, frames = 1 WHERE id = 3; UPDATE messages SET source = 'agent', turn_id = 3 WHERE id = 24`},
	{"mark that stays", "a message has the mark of one that waits, and its turn has ended",
		`INSERT INTO messages (id, chat_jid, direction, kind, source, content, target_id, timestamp, received_at, turn_id, out_state)
			VALUES (99, 'telegram:1', 'out', 'reaction', 'waiting', '👀', '1', 1, 1, 1, 'sent');
		INSERT INTO deliveries (message_id, part, state) VALUES (99, 0, 'sent')`},
	{"too few frames", "a turn has more answers than frames",
		`UPDATE turns SET frames = 1 WHERE id = 1`},
	{"same answer twice", "a turn has the same answer twice",
		`UPDATE messages SET content = 'said one' WHERE id = 22`},
	{"younger row first", "the rows of a conversation were answered out of order",
		`UPDATE messages SET turn_id = CASE id WHEN 6 THEN 2 ELSE 3 END WHERE id IN (3, 6)`},
	{"derived from an older row", "the rows of a conversation were answered out of order",
		`UPDATE messages SET turn_id = CASE id WHEN 18 THEN 11 ELSE 12 END WHERE id IN (18, 19)`},
	{"younger row in an older turn", "the rows of a conversation were answered out of order",
		`UPDATE messages SET turn_id = 1 WHERE id = 6`},
	{"younger answer first", "the answers of a conversation are out of order",
		`UPDATE messages SET turn_id = CASE id WHEN 22 THEN 2 ELSE 1 END WHERE id IN (22, 23)`},
	{"overlapping turns", "two agents worked on one session at the same time",
		`UPDATE turns SET started_at = 1400 WHERE id = 2`},
	{"system message of an ended turn", "a system message belongs to a turn that has ended",
		`UPDATE system_messages SET turn_id = 1`},
	{"open stop", "a /stop is not carried out",
		`INSERT INTO stops (chat_jid, before_message, through_turn, created_at) VALUES ('telegram:1', 9, 9, 1)`},
	{"closed run", "a run has not ended",
		`UPDATE runs SET ended_at = NULL WHERE id = 3`},
	{"live run", "a run has not ended",
		`UPDATE runs SET ended_at = NULL, closed_at = NULL WHERE id = 3`},
	{"undecided row", "an inbound row is undecided",
		`INSERT INTO messages (chat_jid, direction, content, timestamp, received_at) VALUES ('telegram:1', 'in', 'ten', 1, 1)`},
	{"wanted file", "a wanted file is neither stored nor given up",
		`UPDATE messages SET pending_files = 1, files_wanted = 1 WHERE id = 10`},
	{"open preview", "a preview neither became an answer nor was removed",
		`INSERT INTO previews (turn_id, chat_jid, state, created_at, updated_at) VALUES (1, 'telegram:1', 'open', 1, 1)`},
	{"queued row", "an outbound row was not delivered",
		`UPDATE messages SET out_state = 'queued' WHERE id = 28`},
	{"sending row", "an outbound row was not delivered",
		`UPDATE messages SET out_state = 'sending' WHERE id = 28`},
	{"ambiguous part", "a sent row has a part that was not sent",
		`INSERT INTO deliveries (message_id, part, state) VALUES (28, 1, 'ambiguous')`},
	{"no parts", "a sent row has no parts",
		`INSERT INTO messages (chat_jid, direction, source, content, timestamp, received_at, out_state)
			VALUES ('telegram:1', 'out', 'tool', 'ten', 1, 1, 'sent')`},
	{"cancelled row with sent part", "a cancelled row was sent",
		`UPDATE messages SET out_state = 'cancelled' WHERE id = 28`},
	{"buttons of an ended question", "a question that has ended still shows its buttons", askRow + `UPDATE messages SET kind = 'message' WHERE id = 31`},
	{"question ended twice", "a question has ended twice", askRow + `INSERT INTO messages (chat_jid, direction, kind, source, content, timestamp, received_at, derived_from, out_state)
			VALUES ('telegram:1', 'out', 'edit', 'notice', 'ended', 1, 1, 30, 'cancelled')`},
	{"answer without a question", "not every answered question has one answer",
		`UPDATE messages SET reason = 'chosen' WHERE id = 10`},
	{"open question", "a question is open after its turn", askRow + `UPDATE asks SET state = 'open', ended_at = NULL`},
	{"change before its message", "a change of a message was delivered before the message",
		askRow + `UPDATE deliveries SET attempts = 9 WHERE message_id = 30`},
	{"answer of what was taken back", "a turn that lost its messages before an agent had it was answered",
		`UPDATE turns SET frames = 1 WHERE id = 13; INSERT INTO messages (id, chat_jid, direction, source, content, timestamp, received_at, turn_id, out_state)
			VALUES (50, 'telegram:1', 'out', 'agent', 'said', 1, 1, 13, 'cancelled')`},
	{"late part", "an answer was delivered before an older one of its thread",
		`UPDATE deliveries SET attempts = 9 WHERE message_id = 21 AND part = 0`},
	{"late row after a first part", "an answer was delivered before an older one of its thread",
		`UPDATE deliveries SET attempts = 9 WHERE message_id = 27; INSERT INTO deliveries (message_id, part, state) VALUES (28, 1, 'sent')`},
}

func all() []Invariant { return append(OfMessages(), AllDelivered()...) }

// database opens a database with the healthy rows, changed by sql.
func database(t *testing.T, change string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+storetest.File(t)+"?_foreign_keys=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	// Turns and messages reference each other.
	for _, statements := range []string{`PRAGMA foreign_keys = OFF`, healthy, `PRAGMA foreign_keys = ON`, change} {
		if _, err := db.Exec(statements); err != nil {
			t.Fatal(err)
		}
	}
	if invalid, err := Lines(db, `PRAGMA foreign_key_check`); err != nil || len(invalid) > 0 {
		t.Fatalf("foreign keys of missing rows: %v, %v", invalid, err)
	}
	return db
}

func TestCheck_HealthyRows_FindsNothing(t *testing.T) {
	found, err := Check(database(t, ""), all())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

func TestCheck_FindsEachViolation(t *testing.T) {
	for _, tc := range violations {
		t.Run(tc.name, func(t *testing.T) {
			found, err := Check(database(t, tc.sql), all())
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || found[0].Violation != tc.violation || len(found[0].Rows) != 1 {
				t.Errorf("found %v, want one row of %q", found, tc.violation)
			}
		})
	}
}

func TestViolations_CoverEveryInvariant(t *testing.T) {
	var invariants, violated []string
	for _, i := range all() {
		invariants = append(invariants, i.Violation)
		if !slices.Contains([]Harm{Lost, Doubled, Reordered, Stuck}, i.Harm) {
			t.Errorf("%q has unknown harm %q", i.Violation, i.Harm)
		}
	}
	for _, p := range violations {
		violated = append(violated, p.violation)
	}
	for _, list := range []*[]string{&invariants, &violated} {
		slices.Sort(*list)
	}
	if twice := len(invariants) - len(slices.Compact(slices.Clone(invariants))); twice > 0 {
		t.Errorf("%d invariants have the name of another", twice)
	}
	for _, name := range invariants {
		if !slices.Contains(violated, name) {
			t.Errorf("no test violates %q", name)
		}
	}
	for _, name := range violated {
		if !slices.Contains(invariants, name) {
			t.Errorf("no invariant %q", name)
		}
	}
}

func TestCheck_InvalidQuery_ReturnsError(t *testing.T) {
	_, err := Check(database(t, ""), []Invariant{{Violation: "invalid query", query: `SELECT nothing FROM nowhere`}})
	if err == nil || !strings.Contains(err.Error(), "invalid query: ") {
		t.Errorf("got error %v", err)
	}
}

func TestLines_JoinColumns(t *testing.T) {
	got, err := Lines(database(t, ""), `SELECT 1, NULL, 'two words' UNION ALL SELECT 2, 'a', ''`)
	if want := []string{"1  two words", "2 a "}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestFinding_String_HasAtMostTenRows(t *testing.T) {
	rows := strings.Fields("a b c d e f g h i j k l")
	for want, f := range map[string]Finding{
		"a violation (1): a":                             {Invariant{Violation: "a violation"}, rows[:1]},
		"a violation (12): a; b; c; d; e; f; g; h; i; j": {Invariant{Violation: "a violation"}, rows},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// On a server, too: queries in SQLite's dialect are translated.
func TestCheck_EmptyDatabase_FindsNothing(t *testing.T) {
	db, err := storetest.OpenSQL(storetest.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, i := range slices.Concat(all(), AllConnected()) {
		if found, err := Check(db, []Invariant{i}); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", i.Violation, found, err)
		}
	}
}
