// Package invariants has queries for states that no database may have, whatever happened to the daemons.
package invariants

import (
	"database/sql"
	"fmt"
	"strings"
)

// Harm is the effect of a violation on users.
type Harm string

// The kinds of harm.
const (
	Lost      Harm = "lost"
	Doubled   Harm = "doubled"
	Reordered Harm = "reordered"
	Stuck     Harm = "stuck"
)

// Invariant is a query that finds no rows in an idle instance.
type Invariant struct {
	Harm      Harm
	Violation string // the meaning of a row that the query finds
	query     string

	AllowedWhileRunning bool // rows are allowed while agents run
	ComparesTimes       bool // meaningless if the clock was set
}

// Finding is a violated invariant.
type Finding struct {
	Invariant
	Rows []string // columns joined by spaces
}

func (f Finding) String() string {
	return fmt.Sprintf("%s (%d): %s", f.Violation, len(f.Rows), strings.Join(f.Rows[:min(len(f.Rows), 10)], "; "))
}

// Check returns the invariants that a database violates.
func Check(db *sql.DB, all []Invariant) (found []Finding, err error) {
	for _, i := range all {
		rows, err := Lines(db, i.query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.Violation, err)
		}
		if len(rows) > 0 {
			found = append(found, Finding{i, rows})
		}
	}
	return found, nil
}

// Lines returns the rows of a query, with columns joined by spaces.
func Lines(db *sql.DB, query string, args ...any) (all []string, err error) {
	rows, err := db.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		fields := make([]string, len(columns))
		for i, v := range values {
			fields[i] = v.String
		}
		all = append(all, strings.Join(fields, " "))
	}
	return all, rows.Err()
}

// OfMessages are the invariants of the path from a message to its answer. Rows are ordered by arrival. A derived
// row has the position of its original, except the text after /new, since commands overtake. Edit notes
// are added to the next turn, whichever that is.
func OfMessages() []Invariant {
	return []Invariant{
		{Harm: Lost, Violation: "a routed row has no turn",
			query: `SELECT id, content FROM messages WHERE disposition = 'routed' AND reason <> 'daemon' AND turn_id IS NULL`},
		{Harm: Lost, Violation: "a prefixed row does not have exactly one derived row",
			query: `SELECT id, content FROM messages m WHERE disposition = 'prefix'
		AND (SELECT count(*) FROM messages d WHERE d.derived_from = m.id) <> 1`},
		{Harm: Stuck, Violation: "a turn has not ended",
			query: `SELECT id, state FROM turns WHERE state NOT IN ('done', 'failed', 'cancelled')`},
		{Harm: Stuck, Violation: "a turn ended without a reason",
			query: `SELECT id, state FROM turns WHERE reason = '' AND ended_at IS NOT NULL`},
		{Harm: Lost, Violation: "a failed turn has no notice",
			query: `SELECT id, error FROM turns t WHERE state = 'failed' AND reason <> 'already_told'
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.source = 'notice')
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.forwarded_from ->> 'kind' = 'answer' AND CAST(m.forwarded_from ->> 'turn_id' AS INTEGER) = t.id)`},
		{Harm: Doubled, Violation: "a turn has no inbound row",
			query: `SELECT id, state, reason FROM turns t WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.direction = 'in')
			AND NOT (state = 'cancelled' AND reason IN ('deleted', 'edit_applied', 'edit_note'))`}, // users took its messages back
		{Harm: Doubled, Violation: "a turn that lost its messages before an agent had it was answered",
			query: `SELECT t.id FROM turns t JOIN messages m ON m.turn_id = t.id WHERE t.reason = 'edit_applied' AND m.source = 'agent'`},
		{Harm: Lost, Violation: "an answered turn has no answer",
			query: `SELECT id FROM turns t WHERE reason = 'answered'
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.direction = 'out')
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.forwarded_from ->> 'kind' = 'answer' AND CAST(m.forwarded_from ->> 'turn_id' AS INTEGER) = t.id)`},
		{Harm: Lost, Violation: "a turn was taken into one that has not ended as done, or into one of another place or run",
			query: `SELECT t.id, t.answered_with FROM turns t LEFT JOIN turns w ON w.id = t.answered_with WHERE t.reason = 'folded'
			AND (w.state = 'done' AND w.reason <> 'folded' AND w.id < t.id AND w.run_id = t.run_id AND w.folder = t.folder
			AND w.chat_jid = t.chat_jid AND w.topic = t.topic AND w.thread_id = t.thread_id AND w.place = t.place) IS NOT TRUE`},
		{Harm: Doubled, Violation: "a turn that was answered with another one has an answer of its own",
			query: `SELECT t.id, m.content FROM turns t JOIN messages m ON m.turn_id = t.id WHERE t.reason = 'folded' AND t.frames <= 1 AND m.source = 'agent'`},
		{Harm: Stuck, Violation: "a message has the mark of one that waits, and its turn has ended",
			query: `SELECT t.id, m.content FROM turns t JOIN messages m ON m.id = (SELECT max(id) FROM messages WHERE turn_id = t.id AND source = 'waiting')
			WHERE t.ended_at IS NOT NULL AND m.content NOT LIKE '-%' AND m.out_state = 'sent'
			AND NOT (t.reason IN ('already_told', 'cancelled', 'over_budget') AND m.content = '🤷')`},
		{Harm: Doubled, Violation: "a turn has more answers than frames",
			query: `SELECT id, frames FROM turns t WHERE frames < (SELECT count(*) FROM messages m WHERE m.turn_id = t.id AND m.source = 'agent' AND m.kind = 'message')`},
		{Harm: Doubled, Violation: "a turn has the same answer twice",
			query: `SELECT turn_id, content FROM messages WHERE source = 'agent' GROUP BY turn_id, content, attachments ->> '$[0].name' HAVING count(*) > 1`},
		{Harm: Reordered, Violation: "the rows of a conversation were answered out of order",
			query: `SELECT * FROM (SELECT t.id, first, lag(last) OVER conversation AS before FROM turns t JOIN (
			SELECT turn_id, min(ifnull(derived_from, id)) AS first, max(ifnull(derived_from, id)) AS last FROM messages
			WHERE direction = 'in' AND turn_id IS NOT NULL AND verb NOT IN ('edit', 'delete') AND source <> 'command'
			GROUP BY turn_id) AS answered ON turn_id = t.id
		WINDOW conversation AS (PARTITION BY folder, chat_jid, topic, thread_id, place ORDER BY t.id)) AS ordered WHERE before > first`},
		{Harm: Reordered, Violation: "the answers of a conversation are out of order",
			query: `SELECT * FROM (SELECT m.id, m.turn_id, lag(m.turn_id) OVER (PARTITION BY t.folder, t.chat_jid, t.topic, t.thread_id, t.place ORDER BY m.id)
			AS before FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.source = 'agent') AS ordered WHERE before > turn_id`},
		{Harm: Reordered, Violation: "two agents worked on one session at the same time",
			query: `SELECT a.id, b.id FROM turns a JOIN turns b ON a.folder = b.folder AND a.topic = b.topic AND a.id < b.id
		WHERE a.state = 'done' AND b.state = 'done' AND a.run_id <> b.run_id AND a.started_at < b.ended_at AND b.started_at < a.ended_at`,
			ComparesTimes: true},
		{Harm: Stuck, Violation: "a /stop is not carried out",
			query: `SELECT id, chat_jid FROM stops`},
		{Harm: Stuck, Violation: "a system message belongs to a turn that has ended",
			query: `SELECT s.id, s.event FROM system_messages s JOIN turns t ON t.id = s.turn_id WHERE t.ended_at IS NOT NULL`},
		{Harm: Stuck, Violation: "a run has not ended",
			query:               `SELECT id, folder, topic, pid FROM runs WHERE ended_at IS NULL`,
			AllowedWhileRunning: true},
	}
}

// AllDelivered are the invariants of instances that have an adapter for each platform and no rows that
// must wait.
func AllDelivered() []Invariant {
	return []Invariant{
		{Harm: Stuck, Violation: "an inbound row is undecided",
			query: `SELECT id, chat_jid, content FROM messages WHERE direction = 'in' AND disposition IS NULL`},
		{Harm: Stuck, Violation: "a wanted file is neither stored nor given up",
			query: `SELECT id, chat_jid, pending_files FROM messages WHERE pending_files > 0 AND files_wanted = 1`},
		{Harm: Stuck, Violation: "an outbound row was not delivered",
			query: `SELECT id, chat_jid, out_state FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending')`},
		{Harm: Stuck, Violation: "a preview neither became an answer nor was removed",
			query: `SELECT id, turn_id, chat_jid, platform_id FROM previews WHERE state = 'open'`},
		{Harm: Lost, Violation: "a sent row has a part that was not sent",
			query: `SELECT m.id, d.part, d.state FROM messages m JOIN deliveries d ON d.message_id = m.id
			WHERE m.out_state = 'sent' AND d.state <> 'sent'`},
		{Harm: Lost, Violation: "a sent row has no parts",
			query: `SELECT id FROM messages m WHERE out_state = 'sent' AND platform <> 'group'
			AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message_id = m.id)`},
		{Harm: Doubled, Violation: "a cancelled row was sent",
			query: `SELECT m.id FROM messages m JOIN deliveries d ON d.message_id = m.id WHERE m.out_state = 'cancelled' AND d.state = 'sent'`},
		{Harm: Lost, Violation: "a question that has ended still shows its buttons",
			query: `SELECT a.id FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.state <> 'open' AND m.out_state IN ('sent', 'ambiguous')
			AND NOT EXISTS (SELECT 1 FROM messages e WHERE e.derived_from = m.id AND e.kind = 'edit')`},
		{Harm: Doubled, Violation: "a question has ended twice",
			query: `SELECT derived_from FROM messages WHERE kind = 'edit' AND derived_from IN (SELECT message_id FROM asks) GROUP BY 1 HAVING count(*) > 1`},
		{Harm: Doubled, Violation: "not every answered question has one answer",
			query: `SELECT * FROM (SELECT (SELECT count(*) FROM messages WHERE reason = 'chosen') AS answers,
			(SELECT count(*) FROM asks WHERE state = 'answered' AND (rule_id = 0 OR always = 1)) AS answered) AS counted WHERE answers <> answered`},
		{Harm: Stuck, Violation: "a question is open after its turn",
			query: `SELECT a.id FROM asks a JOIN turns t ON t.id = a.turn_id WHERE a.state = 'open' AND t.ended_at IS NOT NULL AND substr(a.ask_id, 1, 6) NOT IN ('budget', 'gated:')`},
		{Harm: Reordered, Violation: "an answer was delivered before an older one of its thread", // see msg.Message.Decorates for what is none
			query: `SELECT * FROM (SELECT m.id, min(d.seq) AS first, lag(max(d.seq)) OVER (PARTITION BY m.chat_jid, m.thread_id ORDER BY m.id) AS before
			FROM messages m JOIN deliveries d ON d.message_id = m.id
			WHERE m.kind NOT IN ('edit', 'reaction', 'delete') AND NOT (m.kind = 'poll' AND coalesce(m.target_id, '') <> '')
			GROUP BY m.id) AS ordered WHERE before > first`},
		{Harm: Reordered, Violation: "a change of a message was delivered before the message",
			query: `SELECT m.id, o.id FROM messages m JOIN messages o ON o.id = m.derived_from AND o.direction = 'out'
			JOIN deliveries d ON d.message_id = m.id JOIN deliveries p ON p.message_id = o.id WHERE m.direction = 'out' AND d.seq < p.seq`},
	}
}

// AllConnected are the invariants of an instance in which every chat that asked for a group has got one.
func AllConnected() []Invariant {
	return []Invariant{
		{Harm: Stuck, Violation: "a row waits for an approval",
			query: `SELECT id, chat_jid FROM messages WHERE disposition = 'onboarding'`},
		{Harm: Stuck, Violation: "a request is pending",
			query: `SELECT code, chat_jid FROM onboarding_requests WHERE state = 'pending'`},
		{Harm: Doubled, Violation: "a chat has asked twice",
			query: `SELECT chat_jid, count(*) FROM onboarding_requests GROUP BY chat_jid HAVING count(*) > 1`},
		{Harm: Doubled, Violation: "a chat got the notice or the greeting of its request twice",
			query: `SELECT r.chat_jid, r.code FROM onboarding_requests r JOIN messages m ON m.chat_jid = r.chat_jid
			WHERE m.direction = 'out' AND m.source = 'notice' GROUP BY r.chat_jid, r.code
			HAVING count(CASE WHEN instr(m.content, r.code) > 0 THEN 1 END) > 1 OR count(CASE WHEN instr(m.content, 'is connected now') > 0 THEN 1 END) > 1`},
	}
}
