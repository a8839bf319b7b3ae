package store

// Statements about rows that wait for an approval.
const (
	// A skip scan: a seek per chat.
	queryParkedChats = `WITH RECURSIVE parked(jid) AS (
		SELECT min(chat_jid) FROM messages INDEXED BY messages_parked WHERE disposition = 'onboarding'
		UNION ALL SELECT (SELECT min(chat_jid) FROM messages INDEXED BY messages_parked
			WHERE disposition = 'onboarding' AND chat_jid > parked.jid)
		FROM parked WHERE parked.jid IS NOT NULL)
		SELECT jid, EXISTS (SELECT 1 FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending' AND chat_jid = parked.jid)
		FROM parked WHERE jid IS NOT NULL`
	queryParked = `SELECT m.id, ifnull(m.platform_id,''), m.sender, ` + shortName +
		`, m.is_bot_message, m.verb, m.topic, m.thread_id, m.addressed, m.received_at
		FROM messages m INDEXED BY messages_parked WHERE m.disposition = 'onboarding' AND m.chat_jid = ? ORDER BY m.id LIMIT ?+0`
	queryParkedIDs = `SELECT id FROM messages INDEXED BY messages_parked
		WHERE disposition = 'onboarding' AND chat_jid = ? ORDER BY id LIMIT ?+0`
	updateTakeUp = `UPDATE messages INDEXED BY messages_parked SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL
		WHERE disposition = 'onboarding' AND chat_jid = ?`
	updateTakeUpRow = `UPDATE messages SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL
		WHERE id = ? AND disposition = 'onboarding'`
	updateDropParked = `UPDATE messages SET disposition = 'dropped', reason = ?, decided_at = ?, decision_seq = ? WHERE id = ? AND disposition = 'onboarding'`
)
