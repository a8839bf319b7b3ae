package store

const (
	insertTranscript = `INSERT INTO transcripts (message_id, n, turn_id, folder, state, updated_at) VALUES (?,?,?,?,'wanted',?) ON CONFLICT (message_id, n) DO NOTHING`
	// Few are wanted at once. A row is of a turn that waits, or of one that has started or ended meanwhile.
	queryWantedTranscripts = `SELECT x.id, x.message_id, x.n, x.turn_id, x.folder, x.until, m.attachments, m.pending_files, ifnull(t.created_at, 0),
		CASE WHEN t.state = 'queued' AND t.waits_for = 'files' THEN 1 ELSE 0 END
		FROM transcripts x INDEXED BY transcripts_wanted CROSS JOIN messages m ON m.id = x.message_id LEFT JOIN turns t ON t.id = x.turn_id
		WHERE x.state = 'wanted' ORDER BY x.id LIMIT ?+0`
	queryTranscripts        = `SELECT n, text, error FROM transcripts WHERE message_id = ? ORDER BY n`
	updateTranscriptUntil   = `UPDATE transcripts SET until = ?2, updated_at = ?3 WHERE id = ?1 AND state = 'wanted' AND until = 0`
	updateHeldTurn          = `UPDATE turns SET not_before = max(not_before, ?2) WHERE id = ?1 AND state = 'queued' AND waits_for = 'files'`
	deleteWantedTranscripts = `DELETE FROM transcripts WHERE message_id = ? AND state = 'wanted'`
	deleteTranscriptsOf     = `DELETE FROM transcripts WHERE message_id = ?`
	updateTranscriptEnd     = `UPDATE transcripts SET state = ?2, text = ?3, error = ?4, updated_at = ?5 WHERE id = ?1 AND state = 'wanted'`
)
