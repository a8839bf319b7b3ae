package store

// The statements on previews; see queries.go.
const (
	// What decides whether a running turn of a platform, or one turn, gets a preview. The lane waits while it has rows
	// to deliver.
	previewTurn = `SELECT t.id, t.kind, t.folder, t.topic, t.chat_jid, t.thread_id, ifnull(t.reply_to, ''), t.frames, ifnull(t.started_at, 0),
		ifnull(p.updated_at, 0), ifnull(c.kind, ''), ifnull(g.config, ''),
		EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_outbox WHERE m.out_state IN ('queued', 'sending')
			AND m.platform = substr(t.chat_jid, 1, instr(t.chat_jid, ':') - 1) AND m.chat_jid = t.chat_jid AND m.thread_id = t.thread_id AND NOT ` + Decorates + `)`
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
)
