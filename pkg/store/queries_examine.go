package store

// Statements for `dashd doctor`, see queries.go. It runs at any time on any amount of rows: each reads an
// index of the rows in question, or a bounded number of the newest rows.
const (
	queryWaitingByPlatform = `SELECT w.platform, w.n, w.oldest, m.chat_jid, m.received_at FROM
		(SELECT platform, count(*) n, min(id) oldest FROM messages INDEXED BY messages_outbox
			WHERE out_state IN ('queued', 'sending') GROUP BY platform) w
		JOIN messages m ON m.id = w.oldest`
	queryParkedAlone = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages m INDEXED BY messages_parked
		WHERE disposition = 'onboarding' AND received_at <= ?
		AND NOT EXISTS (SELECT 1 FROM onboarding_requests r INDEXED BY onboarding_pending WHERE r.state = 'pending' AND r.chat_jid = m.chat_jid)) w
		LEFT JOIN messages f ON f.id = w.oldest`
	queryWantedBefore = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages INDEXED BY messages_wanted
		WHERE pending_files > 0 AND files_wanted = 1 AND received_at <= ?) w
		LEFT JOIN messages f ON f.id = w.oldest`
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
)
