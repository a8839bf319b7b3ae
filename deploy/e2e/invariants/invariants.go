// Package invariants knows what must never be found in a database, whatever happened to the
// daemons.
package invariants

import (
	"database/sql"
	"fmt"
	"strings"
)

// Harm is what a broken invariant means for people.
type Harm string

// The kinds of harm.
const (
	Lost      Harm = "lost"
	Doubled   Harm = "doubled"
	Reordered Harm = "reordered"
	Stuck     Harm = "stuck"
)

// Invariant is a query that finds what must not be, once everything has come to rest.
type Invariant struct {
	Harm   Harm
	Broken string // what it means if it finds something
	query  string

	Running bool // it may be found as long as agents run
	Clocked bool // it compares times, and means nothing where the clock was set
}

// Finding is what a query found.
type Finding struct {
	Invariant
	Rows []string // with columns joined by blanks
}

func (f Finding) String() string {
	return fmt.Sprintf("%s (%d): %s", f.Broken, len(f.Rows), strings.Join(f.Rows[:min(len(f.Rows), 10)], "; "))
}

// Check asks the database for everything that must not be.
func Check(db *sql.DB, all []Invariant) (found []Finding, err error) {
	for _, i := range all {
		rows, err := Lines(db, i.query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.Broken, err)
		}
		if len(rows) > 0 {
			found = append(found, Finding{i, rows})
		}
	}
	return found, nil
}

// Lines is the answer to a query, a line for each row, its columns joined by blanks.
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

// Path holds of the path to the answer, at the end of every history. Order is that of arrival; a
// derived row stands where its original does, except the text behind /new, since commands
// overtake. Notes of edits ride along with whatever turn comes next.
func Path() []Invariant {
	return []Invariant{
		{Harm: Lost, Broken: "a routed row has no turn",
			query: `SELECT id, content FROM messages WHERE disposition = 'routed' AND reason <> 'daemon' AND turn_id IS NULL`},
		{Harm: Lost, Broken: "a prefixed row has not one derived row",
			query: `SELECT id, content FROM messages m WHERE disposition = 'prefix'
		AND (SELECT count(*) FROM messages d WHERE d.derived_from = m.id) <> 1`},
		{Harm: Stuck, Broken: "a turn has not ended",
			query: `SELECT id, state FROM turns WHERE state NOT IN ('done', 'failed', 'cancelled')`},
		{Harm: Stuck, Broken: "a turn ended without a reason",
			query: `SELECT id, state FROM turns WHERE reason = '' AND ended_at IS NOT NULL`},
		{Harm: Lost, Broken: "a turn failed without a word",
			query: `SELECT id, error FROM turns t WHERE state = 'failed'
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.source = 'notice')
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.forwarded_from ->> 'kind' = 'answer' AND m.forwarded_from ->> 'turn_id' = t.id)`},
		{Harm: Doubled, Broken: "a turn was made of nothing",
			query: `SELECT id FROM turns t WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.direction = 'in')`},
		{Harm: Lost, Broken: "an answered turn has no answer",
			query: `SELECT id FROM turns t WHERE reason = 'answered'
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = t.id AND m.direction = 'out')
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.forwarded_from ->> 'kind' = 'answer' AND m.forwarded_from ->> 'turn_id' = t.id)`},
		{Harm: Doubled, Broken: "a turn says more than its agent did",
			query: `SELECT id, frames FROM turns t WHERE frames < (SELECT count(*) FROM messages m WHERE m.turn_id = t.id AND m.source = 'agent')`},
		{Harm: Doubled, Broken: "a turn says the same twice",
			query: `SELECT turn_id, content FROM messages WHERE source = 'agent' GROUP BY turn_id, content HAVING count(*) > 1`},
		{Harm: Reordered, Broken: "the rows of a conversation are answered out of order",
			query: `SELECT * FROM (SELECT t.id, first, lag(last) OVER conversation AS before FROM turns t JOIN (
			SELECT turn_id, min(ifnull(derived_from, id)) AS first, max(ifnull(derived_from, id)) AS last FROM messages
			WHERE direction = 'in' AND turn_id IS NOT NULL AND verb NOT IN ('edit', 'delete') AND source <> 'command'
			GROUP BY turn_id) ON turn_id = t.id
		WINDOW conversation AS (PARTITION BY folder, chat_jid, topic, thread_id, place ORDER BY t.id)) WHERE before > first`},
		{Harm: Reordered, Broken: "the answers of a conversation are out of order",
			query: `SELECT * FROM (SELECT m.id, m.turn_id, lag(m.turn_id) OVER (PARTITION BY t.folder, t.chat_jid, t.topic, t.thread_id, t.place ORDER BY m.id)
			AS before FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.source = 'agent') WHERE before > turn_id`},
		{Harm: Reordered, Broken: "two agents worked on one session at once",
			query: `SELECT a.id, b.id FROM turns a JOIN turns b ON a.folder = b.folder AND a.topic = b.topic AND a.id < b.id
		WHERE a.state = 'done' AND b.state = 'done' AND a.run_id <> b.run_id AND a.started_at < b.ended_at AND b.started_at < a.ended_at`,
			Clocked: true},
		{Harm: Stuck, Broken: "a system message was left with a turn that has ended",
			query: `SELECT s.id, s.event FROM system_messages s JOIN turns t ON t.id = s.turn_id WHERE t.ended_at IS NOT NULL`},
		{Harm: Stuck, Broken: "a run was left open",
			query:   `SELECT id, folder, topic, pid FROM runs WHERE ended_at IS NULL`,
			Running: true},
	}
}

// Whole holds as well where no row was meant to wait and every platform has an adapter.
func Whole() []Invariant {
	return []Invariant{
		{Harm: Stuck, Broken: "an inbound row is undecided",
			query: `SELECT id, chat_jid, content FROM messages WHERE direction = 'in' AND disposition IS NULL`},
		{Harm: Stuck, Broken: "an outbound row was not delivered",
			query: `SELECT id, chat_jid, out_state FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending')`},
		{Harm: Lost, Broken: "a sent row has a part that was not sent",
			query: `SELECT m.id, d.part, d.state FROM messages m JOIN deliveries d ON d.message_id = m.id
			WHERE m.out_state = 'sent' AND d.state <> 'sent'`},
		{Harm: Lost, Broken: "a sent row has no parts",
			query: `SELECT id FROM messages m WHERE out_state = 'sent' AND platform <> 'group'
			AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message_id = m.id)`},
		{Harm: Doubled, Broken: "a withdrawn row was sent",
			query: `SELECT m.id FROM messages m JOIN deliveries d ON d.message_id = m.id WHERE m.out_state = 'cancelled' AND d.state = 'sent'`},
		{Harm: Reordered, Broken: "a row was delivered before an older one of its thread",
			query: `SELECT * FROM (SELECT m.id, min(d.seq) AS first, lag(max(d.seq)) OVER (PARTITION BY m.chat_jid, m.thread_id ORDER BY m.id) AS before
			FROM messages m JOIN deliveries d ON d.message_id = m.id GROUP BY m.id) WHERE before > first`},
	}
}
