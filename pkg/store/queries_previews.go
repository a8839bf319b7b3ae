package store

// The statements on previews; see queries.go.
const (
	// What decides whether a running turn of a platform, or one turn, gets a preview. The lane waits while it has rows
	// to deliver.
	previewTurn = `SELECT t.id, t.kind, t.folder, t.topic, t.chat_jid, t.thread_id, ifnull(t.reply_to, ''), t.frames, ifnull(t.started_at, 0),
		ifnull(p.updated_at, 0), ifnull(c.kind, ''), ifnull(g.config, ''),
		EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_outbox WHERE m.out_state IN ('queued', 'sending')
			AND m.platform = substr(t.chat_jid, 1, instr(t.chat_jid, ':') - 1) AND m.chat_jid = t.chat_jid AND m.thread_id = t.thread_id AND NOT ` + decorates + `)`
	previewJoins = ` LEFT JOIN turn_progress p ON p.turn_id = t.id LEFT JOIN chats c ON c.jid = t.chat_jid
		LEFT JOIN registered_groups g ON g.folder = t.folder`
	queryPreviewTurns = previewTurn + ` FROM turns t INDEXED BY turns_run` + previewJoins + `
		WHERE t.state = 'running' AND t.chat_jid >= ? AND t.chat_jid < ?`
	queryPreviewTurn = previewTurn + ` FROM turns t` + previewJoins + ` WHERE t.id = ? AND t.state = 'running'`

	previewColumns    = `id, turn_id, chat_jid, thread_id, ifnull(platform_id, ''), reply_to, state, ending, created_at`
	queryOpenPreviews = `SELECT ` + previewColumns + ` FROM previews INDEXED BY previews_open
		WHERE state = 'open' AND chat_jid >= ? AND chat_jid < ?`
	queryLanePreviews = `SELECT ` + previewColumns + ` FROM previews INDEXED BY previews_open
		WHERE state = 'open' AND chat_jid = ? AND thread_id = ?`
	queryPreviewShown = `SELECT ` + previewColumns + ` FROM previews INDEXED BY previews_open
		WHERE state = 'open' AND chat_jid = ? AND platform_id = ?`
	queryWrittenBelow = `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat
		WHERE m.chat_jid = ?2 AND m.id > (SELECT trigger_message_id FROM turns WHERE id = ?1) AND m.thread_id = ?3
		AND m.direction = 'in' AND m.verb IN ('', 'message', 'mention', 'reply') AND m.received_at >= ?4)`
	insertPreview     = `INSERT INTO previews (turn_id, chat_jid, thread_id, reply_to, state, created_at, updated_at) VALUES (?1,?2,?3,?4,?5,?6,?6)`
	updateKeepPreview = `UPDATE previews SET platform_id = ?, updated_at = ? WHERE id = ? AND state = 'open' AND chat_jid = ?`
	updateEndPreview  = `UPDATE previews SET state = ?, updated_at = ? WHERE id = ? AND state = 'open'`
	// The preview is to be removed, since a row goes out below it.
	updateEndingPreview = `UPDATE previews SET ending = 1, updated_at = ? WHERE id = ? AND state = 'open'`
	updateReopenPreview = `UPDATE previews SET state = 'open', ending = 1, updated_at = ? WHERE turn_id = ? AND state = 'final' AND platform_id = ?`
)
