package store

// Statements that delete history. ?1 is a row's id, ?2 the time before which rows
// are deleted, in unix ms. A page of rows is read outside a transaction, then each
// row is checked in the one that deletes it.
const (
	queryTurnsPage    = `SELECT id, created_at < ?2 FROM turns WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	queryMessagesPage = `SELECT id, received_at < ?2 FROM messages WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	queryRunsPage     = `SELECT id, started_at < ?2 FROM runs WHERE id > ?1 ORDER BY id LIMIT ?3+0`

	// A turn has ended, as has all that belongs to it, and nothing is to be sent back to it.
	queryTurnIsOld = `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = ?1 AND t.created_at < ?2 AND t.ended_at < ?2
		AND t.state IN ('done', 'failed', 'cancelled')
		AND NOT EXISTS (SELECT 1 FROM turns c WHERE c.root_turn_id = ?1 AND c.id <> ?1)
		AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = ?1 AND (m.received_at >= ?2 OR m.decided_at >= ?2
			OR m.direction = 'in' AND m.disposition IS NULL OR m.disposition = 'onboarding' OR m.out_state IN ('queued', 'sending')))
		AND NOT EXISTS (SELECT 1 FROM system_messages s WHERE s.turn_id = ?1)
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn_id = ?1 AND (a.state = 'open' OR a.ended_at >= ?2))
		AND NOT EXISTS (SELECT 1 FROM messages f INDEXED BY messages_returning
			WHERE f.direction = 'in' AND f.disposition IS NULL AND f.forwarded_from IS NOT NULL
			AND ?1 IN (CAST(json_extract(f.forwarded_from, '$.turn_id') AS INTEGER), CAST(json_extract(f.forwarded_from, '$.root_turn_id') AS INTEGER))))`
	deleteToolCalls    = `DELETE FROM tool_calls WHERE turn_id = ?1`
	deleteTurnProgress = `DELETE FROM turn_progress WHERE turn_id = ?1`
	deletePreviews     = `DELETE FROM previews WHERE turn_id = ?1`
	deleteAsks         = `DELETE FROM asks WHERE turn_id = ?1`
	deleteTurn         = `DELETE FROM turns WHERE id = ?1`

	// A message is decided or delivered, its turn is gone, and no row that is left was
	// made from it, answers it, or is about to change it.
	queryMessageIsOld = `SELECT EXISTS (SELECT 1 FROM messages m WHERE m.id = ?1 AND m.received_at < ?2 AND ifnull(m.decided_at, 0) < ?2
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
	deleteTranscripts = `DELETE FROM transcripts WHERE message_id = ?1`
	deleteForks       = `DELETE FROM forks WHERE message_id = ?1`
	deleteDeliveries  = `DELETE FROM deliveries WHERE message_id = ?1`
	deletePollVotes   = `DELETE FROM poll_votes WHERE poll_id IN (SELECT id FROM polls WHERE message_id = ?1)`
	deletePollRefs    = `DELETE FROM poll_refs WHERE message_id = ?1`
	deletePolls       = `DELETE FROM polls WHERE message_id = ?1`
	// A reminder's last slot says that it has fired.
	deleteSlots = `DELETE FROM reminder_slots WHERE message_id = ?1
		AND slot < (SELECT max(slot) FROM reminder_slots l WHERE l.reminder_id = reminder_slots.reminder_id)`
	updateLastSlot = `UPDATE reminder_slots SET message_id = NULL WHERE message_id = ?1`
	deleteMessage  = `DELETE FROM messages WHERE id = ?1`

	queryRunIsOld = `SELECT EXISTS (SELECT 1 FROM runs r WHERE r.id = ?1 AND r.started_at < ?2 AND r.ended_at < ?2
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.run_id = ?1))`
	deleteRunLog = `DELETE FROM session_log WHERE run_id = ?1`
	deleteRun    = `DELETE FROM runs WHERE id = ?1`

	queryBroadcastsPage = `SELECT id, created_at < ?2 FROM broadcasts WHERE id > ?1 ORDER BY id LIMIT ?3+0`
	queryBroadcastIsOld = `SELECT EXISTS (SELECT 1 FROM broadcasts WHERE id = ?1 AND ended_at < ?2)`
	deleteBroadcast     = `DELETE FROM broadcasts WHERE id = ?1`

	queryRunExists   = `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`
	queryAttachments = `SELECT id, ` + shortAttachments + ` FROM messages m WHERE m.id > ? ORDER BY m.id LIMIT ?+0`
	// Of open turns and of messages that are not sent yet.
	queryNeededFiles = `SELECT 0, ` + shortAttachments +
		` FROM turns t INDEXED BY turns_open CROSS JOIN messages m INDEXED BY messages_turn ON m.turn_id = t.id
		WHERE t.state IN ('queued', 'running') AND m.attachments IS NOT NULL
		UNION ALL SELECT 0, ` + shortAttachments + ` FROM messages m INDEXED BY messages_outbox
		WHERE m.out_state IN ('queued', 'sending') AND m.attachments IS NOT NULL`
)
