// Package rows has the statements that adapters alone need: the outbox, previews, and the posts of a chat.
package rows

import (
	"arizuko/pkg/store"
)

// The statements that run for every message, turn or frame, and all others on
// the tables that grow with these. They are named so that a test can check the
// index that each uses.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
const (
	// A skip scan: a seek per lane, however many rows of it wait.
	queryOutboxLanes = `WITH RECURSIVE head(id) AS (
		SELECT (SELECT id FROM messages INDEXED BY messages_outbox
			WHERE out_state IN ('queued', 'sending') AND platform = ?1||'' ORDER BY chat_jid, thread_id LIMIT 1)
		UNION ALL SELECT (SELECT n.id FROM messages n INDEXED BY messages_outbox
			WHERE n.out_state IN ('queued', 'sending') AND n.platform = ?1||'' AND (n.chat_jid, n.thread_id) > (m.chat_jid||'', m.thread_id||'')
			ORDER BY n.chat_jid, n.thread_id LIMIT 1)
		FROM head JOIN messages m ON m.id = head.id)
		SELECT m.chat_jid, m.thread_id FROM head JOIN messages m ON m.id = head.id`
	queryNewOutbound = `SELECT DISTINCT chat_jid, thread_id, ` + store.Decorates + ` FROM messages m NOT INDEXED
		WHERE id > ? AND id <= ? AND out_state IN ('queued', 'sending') AND platform = ?||''`
	queryOldOutbound = `SELECT DISTINCT chat_jid, thread_id, ` + store.Decorates + ` FROM messages m INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?||'' AND received_at < ?+0`
	nextOutbound = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_outbox
		WHERE m.out_state IN ('queued', 'sending') AND m.platform = ?1||'' AND m.chat_jid = ?2 AND m.thread_id = ?3
		AND NOT EXISTS (SELECT 1 FROM chat_aliases WHERE old_jid = ?2) AND NOT EXISTS (` + movingOut + ` AND a.new_jid = ?2)`
	queryNextOutbound   = nextOutbound + ` AND NOT ` + store.Decorates + ` ORDER BY m.id LIMIT 1`
	queryNextDecoration = nextOutbound + ` AND ` + store.Decorates + ` ORDER BY EXISTS (SELECT 1 FROM messages t
		WHERE t.id = m.derived_from AND t.out_state IN ('queued', 'sending')), m.id LIMIT 1`
	querySuperseded = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?1||'' AND chat_jid = ?2 AND thread_id = ?3 AND id > ?4
		AND (kind = 'delete' OR kind = ?5 AND (kind <> 'reaction' OR content IN (?6, '-'||?6)))
		AND ifnull(target_id, '') = ?7 AND ifnull(derived_from, 0) = ?8)`
	// All running turns, however many are queued.
	queryActiveLanes = `SELECT DISTINCT chat_jid, thread_id FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND chat_jid >= ? AND chat_jid < ?`
	queryActiveTriggers = `SELECT ifnull(m.platform_id, o.platform_id) FROM turns t INDEXED BY turns_run
		JOIN messages m ON m.id = t.trigger_message_id LEFT JOIN messages o ON o.id = m.derived_from
		WHERE t.state = 'running' AND t.chat_jid = ? AND t.thread_id = ?
		AND ifnull(m.platform_id, o.platform_id) IS NOT NULL`
)

// The statements on forks of topics, and on lines for the next prompt of a group.
const (
	// Whether a message is in a thread, or may be.
	queryThreadUsed = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` +
		store.Spoken + `
		AND chat_jid = ? AND thread_id = ? AND (out_state IS NULL OR out_state NOT IN ('queued', 'sending', 'failed', 'cancelled')))`
	queryUnreadSystem = `SELECT count(*) FROM (SELECT 1 FROM system_messages WHERE folder = ? AND turn_id IS NULL AND event = ? ORDER BY id DESC LIMIT ?+0) s`
)

// Statements about chats that were moved.
const (
	movingOut = `SELECT a.new_jid FROM chat_aliases a INDEXED BY chat_aliases_moving WHERE a.moving = 1
		AND EXISTS (SELECT 1 FROM messages o INDEXED BY messages_outbox WHERE o.out_state IN ('queued', 'sending')
			AND o.platform = substr(a.old_jid, 1, instr(a.old_jid, ':') - 1) AND o.chat_jid = a.old_jid)`
	queryNotDelivered = `SELECT old_jid FROM chat_aliases UNION ALL ` + movingOut
)

// Statements about polls and their votes.
const (
	// Those that users can see on a platform, the newest first.
	queryPollsOpen = `SELECT ` + store.PollColumns +
		` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND m.platform = ? AND m.platform_id IS NOT NULL ORDER BY p.id DESC LIMIT ?+0`
	queryPollRef = `SELECT message_id FROM poll_refs WHERE daemon = ? AND ref = ?`
	// Those whose call is under way: a poll that waits for its next attempt has no part that is being sent.
	queryPollsSending = `SELECT m.id FROM messages m INDEXED BY messages_outbox CROSS JOIN deliveries d ON d.message_id = m.id
		WHERE m.out_state IN ('queued', 'sending') AND m.platform = ?1 AND (?2 = '' OR m.chat_jid = ?2) AND m.kind = 'poll' AND d.state = 'sending' LIMIT 100`
	insertPollRef = `INSERT INTO poll_refs (daemon, ref, message_id) VALUES (?,?,?)
		ON CONFLICT (daemon, ref) DO UPDATE SET message_id = excluded.message_id`
)

// The statements of adapters that compare rows with the platform's messages.
const (
	queryPosts = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_platform_id
		WHERE m.chat_jid = ? AND m.platform_id IS NOT NULL AND m.platform_id >= ? AND m.platform_id < ? ORDER BY m.platform_id LIMIT ?+0`
	queryThreadPosts = `SELECT platform_id FROM messages INDEXED BY messages_thread
		WHERE thread_id <> '' AND ` + store.Spoken + ` AND chat_jid = ? AND thread_id = ? AND platform_id IS NOT NULL ORDER BY id DESC LIMIT ?+0`
	// The newest row of each thread of a chat, and of these the ones since a time.
	queryRecentThreads = `SELECT m.thread_id FROM (
		SELECT max(id) AS newest FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` + store.Spoken + ` AND chat_jid = ?1 GROUP BY thread_id
		) t JOIN messages m ON m.id = t.newest WHERE m.received_at >= ?2 ORDER BY m.id`
)

// The statements on previews.
const (
	queryWrittenBelow = `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat
		WHERE m.chat_jid = ?2 AND m.id > (SELECT trigger_message_id FROM turns WHERE id = ?1) AND m.thread_id = ?3
		AND m.direction = 'in' AND m.verb IN ('', 'message', 'mention', 'reply') AND m.received_at >= ?4)`
	insertPreview     = `INSERT INTO previews (turn_id, chat_jid, thread_id, reply_to, state, created_at, updated_at) VALUES (?1,?2,?3,?4,?5,?6,?6)`
	updateKeepPreview = `UPDATE previews SET platform_id = ?, updated_at = ? WHERE id = ? AND state = 'open' AND chat_jid = ?`
	updateEndPreview  = `UPDATE previews SET state = ?, updated_at = ? WHERE id = ? AND state = 'open'`
	// The preview must be removed, since a row goes out below it.
	updateEndingPreview = `UPDATE previews SET ending = 1, updated_at = ? WHERE id = ? AND state = 'open'`
	updateReopenPreview = `UPDATE previews SET state = 'open', ending = 1, updated_at = ? WHERE turn_id = ? AND state = 'final' AND platform_id = ?`
)

const (
	queryWantedFiles = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_wanted
		WHERE m.pending_files > 0 AND m.files_wanted = 1 AND m.platform = ?||'' AND m.direction = 'in' ORDER BY m.id LIMIT ?+0`
)

const (
	// The facts that decide whether a running turn of a platform, or one turn, gets a preview. The lane waits while it
	// has rows to deliver.
	previewTurn = `SELECT t.id, t.kind, t.folder, t.topic, t.chat_jid, t.thread_id, ifnull(t.reply_to, ''), t.frames, ifnull(t.started_at, 0),
		ifnull(p.updated_at, 0), ifnull(c.kind, ''), ifnull(g.config, ''),
		EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_outbox WHERE m.out_state IN ('queued', 'sending')
			AND m.platform = substr(t.chat_jid, 1, instr(t.chat_jid, ':') - 1) AND m.chat_jid = t.chat_jid AND m.thread_id = t.thread_id AND NOT ` + store.Decorates + `)`
	previewJoins = ` LEFT JOIN turn_progress p ON p.turn_id = t.id LEFT JOIN chats c ON c.jid = t.chat_jid
		LEFT JOIN registered_groups g ON g.folder = t.folder`
	queryPreviewTurns = previewTurn + ` FROM turns t INDEXED BY turns_run` + previewJoins + `
		WHERE t.state = 'running' AND t.chat_jid >= ? AND t.chat_jid < ?`
	queryPreviewTurn  = previewTurn + ` FROM turns t` + previewJoins + ` WHERE t.id = ? AND t.state = 'running'`
	previewColumns    = `id, turn_id, chat_jid, thread_id, ifnull(platform_id, ''), reply_to, state, ending, created_at`
	queryOpenPreviews = `SELECT ` + previewColumns + ` FROM previews INDEXED BY previews_open
		WHERE state = 'open' AND chat_jid >= ? AND chat_jid < ?`
	queryLanePreviews = `SELECT ` + previewColumns + ` FROM previews INDEXED BY previews_open
		WHERE state = 'open' AND chat_jid = ? AND thread_id = ?`
	queryPreviewShown = `SELECT ` + previewColumns + ` FROM previews INDEXED BY previews_open
		WHERE state = 'open' AND chat_jid = ? AND platform_id = ?`
)
