package rows

import (
	"context"
	"fmt"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

// MinAuditDays is how long a change is kept at least, if there are not more than that.
const MinAuditDays = 365

// PurgeAudit deletes of the oldest changes, as many as limit, those from before a time, in unix ms, and those beyond
// MaxAuditRows.
func PurgeAudit(tx *store.Tx, before int64, limit int) (deleted int, err error) {
	// Ids are handed out without gaps.
	const query = `DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT ?3+0)
		AND (at < ?1 OR id <= (SELECT max(id) FROM audit) - ?2)`
	n, err := tx.Change(query, before, factrows.MaxAuditRows, limit)
	return int(n), err
}

// History is a table that grows, and whose old rows can be deleted.
type History string

// The kinds of history. The parts of a row go with it: the tool calls, questions, progress and previews of a turn,
// the deliveries, transcripts, forks, closed polls with their votes and reminder slots of a message, the session log of
// a run.
const (
	HistoryTurns    History = "turns"
	HistoryMessages History = "messages"
	HistoryRuns     History = "runs"

	HistoryBroadcasts History = "broadcasts"
)

// A turn has ended, as has all that belongs to it, and nothing is to be sent back to it.
const queryTurnIsOld = `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = ?1 AND t.created_at < ?2 AND t.ended_at < ?2
		AND t.state IN ('done', 'failed', 'cancelled')
		AND NOT EXISTS (SELECT 1 FROM turns c WHERE c.root_turn_id = ?1 AND c.id <> ?1)
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = ?1 AND (m.received_at >= ?2 OR m.decided_at >= ?2
			OR m.direction = 'in' AND m.disposition IS NULL OR m.disposition = 'onboarding' OR m.out_state IN ('queued', 'sending')))
		AND NOT EXISTS (SELECT 1 FROM system_messages s WHERE s.turn_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.turn_id = ?1 AND u.state = 'open')
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn_id = ?1 AND (a.state = 'open' OR a.ended_at >= ?2))
		AND NOT EXISTS (SELECT 1 FROM messages f INDEXED BY messages_returning
			WHERE f.direction = 'in' AND f.disposition IS NULL AND f.forwarded_from IS NOT NULL
			AND ?1 IN (CAST(json_extract(f.forwarded_from, '$.turn_id') AS INTEGER), CAST(json_extract(f.forwarded_from, '$.root_turn_id') AS INTEGER))))`

// A message is decided or delivered, its turn is gone, and no row that is left was
// made from it, answers it, or is about to change it.
const queryMessageIsOld = `SELECT EXISTS (SELECT 1 FROM messages m WHERE m.id = ?1 AND m.received_at < ?2 AND ifnull(m.decided_at, 0) < ?2
		AND (m.direction = 'out' OR m.disposition IS NOT NULL) AND m.disposition IS DISTINCT FROM 'onboarding'
		AND ifnull(m.out_state, '') NOT IN ('queued', 'sending')
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id)
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.trigger_message_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.derived_from = ?1)
		AND NOT EXISTS (SELECT 1 FROM messages e WHERE e.chat_jid = m.chat_jid AND e.target_id = m.platform_id
			AND e.direction = 'in' AND e.disposition IS NULL)
		AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = ?1 AND (d.updated_at >= ?2 OR d.state IN ('queued', 'sending')))
		AND NOT EXISTS (SELECT 1 FROM polls p WHERE p.message_id = ?1 AND (p.state = 'open' OR p.end_pending = 1 OR p.closed_at >= ?2))
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.message_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM chat_reply_state r WHERE r.jid = m.chat_jid AND r.last_reply_id = ?1))`

// purgeQueries are the statements for one kind of history. A page of rows is read outside a transaction, then each row
// is checked in the one that deletes it. ?1 is the id of a row, ?2 the time before which rows are deleted, in unix ms.
type purgeQueries struct {
	page    string
	isOld   string
	deletes []string // the row itself last
}

func (h History) queries() purgeQueries {
	switch h {
	case HistoryTurns:
		return purgeQueries{`SELECT id, created_at < ?2 FROM turns WHERE id > ?1 ORDER BY id LIMIT ?3+0`,
			queryTurnIsOld, []string{
				`DELETE FROM tool_calls WHERE turn_id = ?1`,
				deleteTurnProgress,
				`DELETE FROM previews WHERE turn_id = ?1`,
				`DELETE FROM asks WHERE turn_id = ?1`,
				`DELETE FROM undos WHERE turn_id = ?1`,
				`DELETE FROM turns WHERE id = ?1`,
			}}
	case HistoryMessages:
		return purgeQueries{`SELECT id, received_at < ?2 FROM messages WHERE id > ?1 ORDER BY id LIMIT ?3+0`,
			queryMessageIsOld, []string{
				`DELETE FROM deliveries WHERE message_id = ?1`,
				`DELETE FROM transcripts WHERE message_id = ?1`,
				`DELETE FROM forks WHERE message_id = ?1`,
				`DELETE FROM poll_votes WHERE poll_id IN (SELECT id FROM polls WHERE message_id = ?1)`,
				`DELETE FROM poll_refs WHERE message_id = ?1`,
				`DELETE FROM polls WHERE message_id = ?1`,
				// A reminder's last slot says that it has fired.
				`DELETE FROM reminder_slots WHERE message_id = ?1
					AND slot < (SELECT max(slot) FROM reminder_slots l WHERE l.reminder_id = reminder_slots.reminder_id)`,
				`UPDATE reminder_slots SET message_id = NULL WHERE message_id = ?1`,
				`DELETE FROM messages WHERE id = ?1`,
			}}
	case HistoryRuns:
		return purgeQueries{`SELECT id, started_at < ?2 FROM runs WHERE id > ?1 ORDER BY id LIMIT ?3+0`,
			`SELECT EXISTS (SELECT 1 FROM runs r WHERE r.id = ?1 AND r.started_at < ?2 AND r.ended_at < ?2
				AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.run_id = ?1))`, []string{
				`DELETE FROM session_log WHERE run_id = ?1`,
				`DELETE FROM runs WHERE id = ?1`,
			}}
	case HistoryBroadcasts:
		return purgeQueries{`SELECT id, created_at < ?2 FROM broadcasts WHERE id > ?1 ORDER BY id LIMIT ?3+0`,
			`SELECT EXISTS (SELECT 1 FROM broadcasts WHERE id = ?1 AND ended_at < ?2)`, []string{
				`DELETE FROM broadcasts WHERE id = ?1`,
			}}
	}
	panic("unknown history " + string(h))
}

// OldRows reads limit rows after an id and returns those that are older than the
// time before, in unix ms, and the id to continue after. It returns none at the end,
// which is where no row of a page is old.
func OldRows(ctx context.Context, r store.Reader, h History, after, before int64, limit int) (ids []int64, next int64,
	err error) {
	next = after
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var old bool
		err := scan(&next, &old)
		if old {
			ids = append(ids, next)
		}
		return true, err
	}, h.queries().page, after, before, limit)
	return ids, next, err
}

// Purge deletes those of the rows that are older than the time before, in unix ms,
// and returns how many. It leaves a row that waits for something, or that a row which
// is left needs.
func Purge(tx *store.Tx, h History, ids []int64, before int64) (deleted int, err error) {
	q := h.queries()
	for _, id := range ids {
		var old bool
		if _, err := tx.Find([]any{&old}, q.isOld, id, before); err != nil {
			return deleted, fmt.Errorf("purge %s %d: %w", h, id, err)
		}
		if !old {
			continue
		}
		for _, query := range q.deletes {
			if err := tx.Exec(query, id); err != nil {
				return deleted, fmt.Errorf("purge %s %d: %w", h, id, err)
			}
		}
		deleted++
	}
	return deleted, nil
}
