// Package rows has the statements of those who look for problems: doctor, status, why and the dashboard.
package rows

import (
	"arizuko/pkg/store"
)

const (
	// The number of rows of an index of those that wait, and the oldest of them.
	countOf     = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages m INDEXED BY `
	withOldest  = `) w LEFT JOIN messages f ON f.id = w.oldest`
	isUndecided = `messages_undecided WHERE direction = 'in' AND disposition IS NULL`
	isUnsent    = `messages_outbox WHERE out_state IN ('queued', 'sending')`

	queryUndecided       = countOf + isUndecided + withOldest
	queryUndecidedInChat = countOf + isUndecided + ` AND chat_jid = ? AND received_at <= ?` + withOldest
	queryUnsent          = countOf + isUnsent + withOldest
	queryUnsentInChat    = countOf + isUnsent + ` AND platform = ? AND chat_jid = ? AND received_at <= ?` + withOldest
	queryParkedAlone     = countOf + `messages_parked WHERE disposition = 'onboarding' AND received_at <= ?
		AND NOT EXISTS (SELECT 1 FROM onboarding_requests r INDEXED BY onboarding_pending WHERE r.state = 'pending' AND r.chat_jid = m.chat_jid)` + withOldest
	queryWantedBefore = countOf + `messages_wanted WHERE pending_files > 0 AND files_wanted = 1 AND received_at <= ?` + withOldest

	// Those that a text without a target may have answered at a time: they stand in the thread above it.
	queryAsksOpenAt = `SELECT ` + store.AskColumns + ` FROM (SELECT m.id, m.thread_id FROM messages m INDEXED BY messages_chat
			WHERE m.chat_jid = ?1 AND m.id < ?3 ORDER BY m.id DESC LIMIT 1000) m CROSS JOIN asks a INDEXED BY asks_message ON a.message_id = m.id
		WHERE m.thread_id = ?2 AND a.created_at <= ?4 AND ifnull(a.ended_at, ?4) >= ?4 ORDER BY a.id LIMIT 20`
	queryPresses = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'in' AND m.verb = 'answer' ORDER BY m.id LIMIT 20`

	queryUnsentByPlatform = `SELECT w.platform, w.n, w.oldest, m.chat_jid, m.received_at FROM
		(SELECT platform, count(*) n, min(id) oldest FROM messages INDEXED BY messages_outbox
			WHERE out_state IN ('queued', 'sending') GROUP BY platform) w
		JOIN messages m ON m.id = w.oldest`
	queryWaitingRequests = `SELECT w.n, ifnull(r.code,''), ifnull(r.chat_jid,''), ifnull(r.created_at,0)
		FROM (SELECT count(*) AS n FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending') w
		LEFT JOIN onboarding_requests r ON r.code = (SELECT code FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending'
			ORDER BY created_at LIMIT 1)`
	queryRefused = `SELECT count(*) FROM messages NOT INDEXED WHERE id > (SELECT max(id) FROM messages) - ?
		AND reason = ? AND received_at >= ?`
	queryUndelivered = `SELECT m.id, m.chat_jid, m.out_state, ifnull(d.error_class,''), ifnull(d.error,'') FROM messages m
		LEFT JOIN deliveries d ON d.message_id = m.id AND d.state = m.out_state
		AND d.part = (SELECT min(part) FROM deliveries f WHERE f.message_id = m.id AND f.state = m.out_state)
		WHERE m.id > (SELECT max(id) FROM messages) - ?2 AND m.out_state||'' IN ('failed', 'ambiguous') AND m.received_at >= ?1 AND m.source <> 'waiting' ORDER BY m.id DESC`
	queryArrivals = `SELECT id, received_at FROM messages NOT INDEXED WHERE id > (SELECT max(id) FROM messages) - ? ORDER BY id`

	// For operators who ask about one message: there are few broadcasts.
	queryBroadcastOf = `SELECT id, created_by, json_array_length(chats) FROM broadcasts
		WHERE EXISTS (SELECT 1 FROM json_each(message_ids) WHERE CAST(value AS INTEGER) = ?)`

	queryDelegated = `SELECT ` + store.TurnColumns +
		` FROM turns t WHERE t.root_turn_id = ? AND t.kind = 'delegated' ORDER BY t.id`
	queryRunningTurns = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' ORDER BY t.id LIMIT ?+0`
	queryRunningCount = `SELECT count(*) FROM turns INDEXED BY turns_run WHERE state = 'running'`
	queryQueuedTurns  = `SELECT ` + store.TurnColumns + ` FROM turns t WHERE t.id IN
		(SELECT id FROM turns INDEXED BY turns_queued WHERE state = 'queued' ORDER BY id LIMIT ?+0) ORDER BY t.id`
	queryQueuedCount = `SELECT count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued'`
	// Of the runs that began after the turn all are looked at.
	queryRunsDuring = `SELECT ` + store.RunColumns + `, l.result, l.error FROM session_log l INDEXED BY session_log_topic
		JOIN runs r ON r.id = l.run_id WHERE l.folder = ?1 AND l.topic = ?2 AND r.started_at <= ?4
		AND ifnull(r.ended_at, ?4) >= ?3 ORDER BY l.id DESC LIMIT ?5+0`
	queryOwnReplies = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_chat
		WHERE m.chat_jid = ?1 AND m.id > ?2 AND m.id <= ?2 + 10000 AND m.reply_to_id = ?3
		AND m.direction = 'out' AND m.turn_id IS NULL ORDER BY m.id`
)
