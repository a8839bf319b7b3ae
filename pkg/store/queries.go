package store

// The statements that run for every message, turn or frame, and all others on
// the tables that grow with these. They are named so that a test can check the
// index that each uses.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
const (
	queryMessage      = `SELECT ` + messageColumns + ` FROM messages m WHERE m.id = ?`
	queryByPlatformID = `SELECT ` + messageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.platform_id = ?`
	queryByPart       = `SELECT ` + messageColumns + ` FROM deliveries d JOIN messages m ON m.id = d.message_id
		WHERE d.platform_id = ? AND m.chat_jid = ? LIMIT 1`
	queryMessageID   = `SELECT id FROM messages WHERE chat_jid = ? AND platform_id = ?`
	queryLastID      = `SELECT ifnull(max(id), 0) FROM messages`
	queryNewMessages = `SELECT id, chat_jid, direction = 'in' AND disposition IS NULL, received_at
		FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`
	// A skip scan: a seek per chat, however many rows of it wait.
	queryUndecidedChats = `WITH RECURSIVE waiting(jid) AS (
		SELECT min(chat_jid) FROM messages INDEXED BY messages_undecided WHERE direction = 'in' AND disposition IS NULL
		UNION ALL SELECT (SELECT min(chat_jid) FROM messages INDEXED BY messages_undecided
			WHERE direction = 'in' AND disposition IS NULL AND chat_jid > waiting.jid)
		FROM waiting WHERE waiting.jid IS NOT NULL)
		SELECT jid FROM waiting WHERE jid IS NOT NULL`
	// Rows of a chat's former address are not decided there, and before those of its
	// present one.
	queryUndecided = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ?1 AND m.id > ?2
		AND NOT EXISTS (SELECT 1 FROM chat_aliases WHERE old_jid = ?1) AND NOT EXISTS (` + movingIn + ` AND a.new_jid = ?1)
		ORDER BY m.id LIMIT ?3+0`
	queryTurnMessages = `SELECT ` + messageColumns +
		` FROM messages m WHERE m.turn_id = ? AND m.direction = 'in' ORDER BY m.id`
	queryTurnReplies = `SELECT ` + messageColumns +
		` FROM messages m WHERE m.turn_id = ? AND m.direction = 'out' AND m.source <> 'waiting' ORDER BY m.id`
	// The first of a group: an album has ten, a text of the longest size 256 pieces.
	queryGroupRows = `SELECT ` + foundColumns + ` FROM messages m INDEXED BY messages_groups
		WHERE m.group_key <> '' AND m.chat_jid = ? AND m.group_key = ? ORDER BY m.id LIMIT 256`
	queryDerivedFrom = `SELECT ` + messageColumns + ` FROM messages m WHERE m.derived_from = ? ORDER BY m.id`
	// directMessages is the condition of a row m of a direct message. A chat that no adapter has described is judged by
	// its address, as msg.KindOfJID does.
	directMessages = `ifnull((SELECT c.kind = 'dm' FROM chats c WHERE c.jid = m.chat_jid),
		glob('telegram:[^-]*', m.chat_jid) OR glob('telegram+*:[^-]*', m.chat_jid) OR glob('discord:dm-*', m.chat_jid) OR glob('discord+*:dm-*', m.chat_jid)
		OR glob('slack:D*', m.chat_jid) OR glob('slack+*:D*', m.chat_jid))`
	observedRows = `(SELECT id, decision_seq, chat_jid FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq > ?2 AND decision_seq <= ?6 ORDER BY decision_seq DESC LIMIT 10000) o
		JOIN messages m ON m.id = o.id
		WHERE o.chat_jid <> ?3 AND m.received_at >= ?4 AND m.is_bot_message = 0
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND m.disposition IN ('routed', 'observed') AND m.verb NOT IN ('edit', 'delete')
		AND NOT (?5 AND ` + directMessages + `)`
	queryObserved = `SELECT ` + messageColumns + ` FROM ` + observedRows +
		` ORDER BY o.decision_seq DESC LIMIT ?7+0`
	queryObservedCount = `SELECT count(*) FROM ` + observedRows
	queryLastStaleAt   = `SELECT received_at FROM messages INDEXED BY messages_stale WHERE chat_jid = ? AND reason = 'stale'
		ORDER BY id DESC LIMIT 1`
	// Of the newest 500 rows of the chat: a loop of bots is faster than users.
	queryBotTurns = `SELECT count(DISTINCT turn_id) FROM (SELECT turn_id, sender, is_bot_message, received_at FROM messages
		WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 500) n WHERE is_bot_message = 1 AND sender = ?2 AND turn_id IS NOT NULL AND received_at > ?3`
	// Newest first; the reader stops at the first that is too old.
	queryRecentTurns = `SELECT CASE WHEN m.on_behalf_of = '' THEN m.sender ELSE m.on_behalf_of END, ifnull(m.turn_id, 0), ifnull(m.decided_at, 0),
		m.disposition = 'routed' AND (m.forwarded_from IS NULL OR m.on_behalf_of <> '')
		FROM messages m INDEXED BY messages_routed WHERE m.routed_to = ? ORDER BY m.decision_seq DESC LIMIT 100000`
	// Of the newest 1000 rows of the chat.
	queryLastRateLimit = `SELECT ifnull(max(decided_at), 0) FROM (SELECT CASE WHEN on_behalf_of = '' THEN sender ELSE on_behalf_of END AS payer, verb, reason, decided_at
		FROM messages INDEXED BY messages_chat WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE reason = 'rate_limit' AND payer = ? AND verb <> 'reaction'`
	// Likewise.
	queryCommandsOf = `SELECT received_at, reason = 'command_limit' FROM (SELECT sender, disposition, reason, received_at FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE sender = ? AND (disposition = 'sticky' OR reason IN ('command', 'pin_denied', 'command_limit'))`
	queryFoldersOfSender = `SELECT DISTINCT sender = ?2, routed_to FROM (SELECT sender, routed_to, turn_id FROM messages INDEXED BY messages_chat
		WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 1000) n WHERE turn_id IS NOT NULL AND routed_to IS NOT NULL`
	queryFiredEdit = `SELECT ` + messageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.disposition = 'routed' AND m.reason = 'edit_addressed' ORDER BY m.id DESC LIMIT 1`
	queryDeleted    = `SELECT EXISTS (SELECT 1 FROM messages WHERE chat_jid = ? AND target_id = ? AND verb = 'delete' AND direction = 'in' AND id < ?)`
	queryLatestEdit = `SELECT ` + messageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.reason IN ('edit_note', 'edit_superseded', 'edit_addressed') AND m.verb = 'edit' ORDER BY m.id DESC LIMIT 1`

	insertMessage = `INSERT INTO messages (chat_jid, platform_id, direction, kind, sender, sender_name, is_bot_message,
		verb, content, attachments, topic, thread_id, reply_to_id, target_id, addressed, pending_files, timestamp,
		received_at, source, derived_from, forwarded_from, turn_id, out_state, files_wanted, group_key, quote, on_behalf_of)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_jid, platform_id) WHERE platform_id IS NOT NULL DO NOTHING`
	// A row of a quoted post gives its platform id to the post itself.
	updateEndQuoted = `UPDATE messages SET platform_id = NULL, disposition = 'dropped', reason = 'duplicate'
		WHERE chat_jid = ? AND platform_id = ? AND disposition = 'observed' AND reason = 'quoted'`
	updateEndQuotedOfOwn = `UPDATE messages SET platform_id = NULL, disposition = 'dropped', reason = 'duplicate'
		WHERE chat_jid = (SELECT chat_jid FROM messages WHERE id = ?) AND platform_id = ? AND disposition = 'observed' AND reason = 'quoted'`
	updateDecide = `UPDATE messages SET disposition = ?, reason = ?, routed_to = ?, turn_id = ?, topic = ?, thread_id = ?,
		error = ?, decided_at = ?, decision_seq = ? WHERE id = ? AND disposition IS NULL RETURNING received_at`
	updateContent     = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ? AND disposition IS NULL`
	updateOtherFiles  = `UPDATE messages SET attachments = ?, pending_files = ?, files_wanted = 0 WHERE id = ? AND disposition IS NULL`
	updateAttachNotes = `UPDATE messages SET turn_id = ?1 WHERE id IN (SELECT id FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?2 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?3 AND thread_id = ?4
		AND (thread_id <> '' OR topic = ?5) ORDER BY id LIMIT 20)`
	queryNote = `SELECT id FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?1 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?2 AND thread_id = ?3
		AND (thread_id <> '' OR topic = ?4) ORDER BY id LIMIT 1`
	updateReleaseNotes = `UPDATE messages SET turn_id = NULL WHERE turn_id = ? AND reason = 'edit_note'`
	updateTurnNotes    = `UPDATE messages SET turn_id = NULL, reason = 'edit_superseded' WHERE turn_id = ? AND reason = 'edit_note' AND target_id = ?`
	updateTurnContent  = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ?`
	updateWithdraw     = `UPDATE messages SET disposition = 'dropped', reason = ?, routed_to = NULL, turn_id = NULL, files_wanted = 0, decided_at = ?, decision_seq = ? WHERE id = ?`
	updateUndecide     = `UPDATE messages SET disposition = NULL, reason = NULL, routed_to = NULL, turn_id = NULL, decided_at = NULL, decision_seq = NULL WHERE id = ?`
	updateOldNotes     = `UPDATE messages INDEXED BY messages_note_targets SET reason = 'edit_superseded'
		WHERE chat_jid = ? AND reason = 'edit_note' AND turn_id IS NULL AND target_id = ?`
	updateCancelReplies = `UPDATE messages SET out_state = 'cancelled'
		WHERE turn_id = ? AND direction = 'out' AND out_state = 'queued'`

	// A skip scan: a seek per lane, however many rows of it wait.
	queryOutboxLanes = `WITH RECURSIVE head(id) AS (
		SELECT (SELECT id FROM messages INDEXED BY messages_outbox
			WHERE out_state IN ('queued', 'sending') AND platform = ?1||'' ORDER BY chat_jid, thread_id LIMIT 1)
		UNION ALL SELECT (SELECT n.id FROM messages n INDEXED BY messages_outbox
			WHERE n.out_state IN ('queued', 'sending') AND n.platform = ?1||'' AND (n.chat_jid, n.thread_id) > (m.chat_jid||'', m.thread_id||'')
			ORDER BY n.chat_jid, n.thread_id LIMIT 1)
		FROM head JOIN messages m ON m.id = head.id)
		SELECT m.chat_jid, m.thread_id FROM head JOIN messages m ON m.id = head.id`
	// See msg.Message.Decorates.
	decorates        = `(m.kind IN ('edit', 'reaction', 'delete') OR m.kind = 'poll' AND m.target_id IS NOT NULL)`
	queryNewOutbound = `SELECT DISTINCT chat_jid, thread_id, ` + decorates + ` FROM messages m NOT INDEXED
		WHERE id > ? AND id <= ? AND out_state IN ('queued', 'sending') AND platform = ?||''`
	queryOldOutbound = `SELECT DISTINCT chat_jid, thread_id, ` + decorates + ` FROM messages m INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?||'' AND received_at < ?+0`
	nextOutbound = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_outbox
		WHERE m.out_state IN ('queued', 'sending') AND m.platform = ?1||'' AND m.chat_jid = ?2 AND m.thread_id = ?3
		AND NOT EXISTS (SELECT 1 FROM chat_aliases WHERE old_jid = ?2) AND NOT EXISTS (` + movingOut + ` AND a.new_jid = ?2)`
	queryNextOutbound   = nextOutbound + ` AND NOT ` + decorates + ` ORDER BY m.id LIMIT 1`
	queryNextDecoration = nextOutbound + ` AND ` + decorates + ` ORDER BY EXISTS (SELECT 1 FROM messages t
		WHERE t.id = m.derived_from AND t.out_state IN ('queued', 'sending')), m.id LIMIT 1`
	querySuperseded = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?1||'' AND chat_jid = ?2 AND thread_id = ?3 AND id > ?4
		AND (kind = 'delete' OR kind = ?5 AND (kind <> 'reaction' OR content IN (?6, '-'||?6)))
		AND ifnull(target_id, '') = ?7 AND ifnull(derived_from, 0) = ?8)`
	queryWantedFiles = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_wanted
		WHERE m.pending_files > 0 AND m.files_wanted = 1 AND m.platform = ?||'' AND m.direction = 'in' ORDER BY m.id LIMIT ?+0`
	updateWantFiles = `UPDATE messages SET files_wanted = 1 WHERE id = ? AND pending_files > 0 AND files_wanted = 0 RETURNING chat_jid`
	updateFiles     = `UPDATE messages SET attachments = ?, pending_files = 0 WHERE id = ? AND pending_files > 0`
	// All running turns, however many are queued.
	queryActiveLanes = `SELECT DISTINCT chat_jid, thread_id FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND chat_jid >= ? AND chat_jid < ?`
	queryActiveTriggers = `SELECT ifnull(m.platform_id, o.platform_id) FROM turns t INDEXED BY turns_run
		JOIN messages m ON m.id = t.trigger_message_id LEFT JOIN messages o ON o.id = m.derived_from
		WHERE t.state = 'running' AND t.chat_jid = ? AND t.thread_id = ?
		AND ifnull(m.platform_id, o.platform_id) IS NOT NULL`
	queryDeliveries = `SELECT message_id, part, state, attempts, not_before, ifnull(platform_id,''), ifnull(error_class,''), ifnull(error,'')
		FROM deliveries WHERE message_id = ? ORDER BY part`
	updateClaimOutbound  = `UPDATE messages SET out_state = 'sending' WHERE id = ? AND out_state = 'queued'`
	updateSettleOutbound = `UPDATE messages SET out_state = ?1, platform_id = (SELECT ?2 WHERE NOT EXISTS
		(SELECT 1 FROM messages o WHERE o.chat_jid = messages.chat_jid AND o.platform_id = ?2))
		WHERE id = ?3 AND out_state = 'sending'`
	putDelivery = `INSERT INTO deliveries (message_id, part, state, attempts, not_before, platform_id, error_class, error, updated_at)
		VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (message_id, part) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
		not_before = excluded.not_before, platform_id = excluded.platform_id, error_class = excluded.error_class,
		error = excluded.error, updated_at = excluded.updated_at`

	changes    = `m.kind IN ('edit', 'reaction', 'delete')`
	visible    = `m.platform = 'web' AND m.verb NOT IN ('vote', 'answer') AND (m.direction = 'in' OR m.out_state IS NULL OR m.out_state NOT IN ('cancelled', 'failed'))`
	notDerived = `(m.derived_from IS NULL OR m.topic <> (SELECT topic FROM messages o WHERE o.id = m.derived_from))`
	readable   = visible + ` AND (` + changes + ` OR ` + notDerived + `)`
	delivered  = visible + ` AND NOT ` + changes + ` AND ` + notDerived +
		` AND (m.out_state IS NULL OR m.out_state NOT IN ('queued', 'sending'))`
	queryWebBefore = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_chat
		WHERE ` + delivered + ` AND m.chat_jid = ? AND m.id < ? ORDER BY m.id DESC LIMIT ?+0`
	queryWebTopicBefore = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_web
		WHERE ` + delivered + ` AND m.chat_jid = ? AND m.topic = ? AND m.id < ? ORDER BY m.id DESC LIMIT ?+0`
	queryWebAfter = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_chat
		WHERE ` + readable + ` AND m.chat_jid = ? AND m.id > ? ORDER BY m.id LIMIT ?+0`
	// By the row of an own message, and by the platform id of a user's.
	queryChangesOfRow = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_derived
		WHERE m.derived_from = ? AND m.direction = 'out' AND ` + changes + ` AND m.out_state IN ('sent', 'ambiguous') ORDER BY m.id`
	queryChangesOfPost = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'out' AND ` + changes + ` AND m.out_state IN ('sent', 'ambiguous') ORDER BY m.id`
	queryWebEnd = `SELECT ifnull((SELECT min(id) - 1 FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = 'web' AND chat_jid = ?), (SELECT ifnull(max(id), 0) FROM messages))`
	queryNewRows        = `SELECT id, chat_jid FROM messages NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?+0`
	queryWebUndelivered = `SELECT chat_jid, min(id) FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = 'web' GROUP BY chat_jid`
	queryWebTopics = `WITH RECURSIVE topics(topic) AS (
		SELECT min(topic) FROM messages INDEXED BY messages_web WHERE platform = 'web' AND chat_jid = ?1
		UNION ALL SELECT (SELECT min(topic) FROM messages INDEXED BY messages_web
			WHERE platform = 'web' AND chat_jid = ?1 AND topic > topics.topic)
		FROM topics WHERE topics.topic IS NOT NULL)
		SELECT m.topic, m.id, m.received_at FROM topics JOIN messages m ON m.id = (SELECT max(id) FROM messages INDEXED BY messages_web
			WHERE platform = 'web' AND chat_jid = ?1 AND topic = topics.topic)
		WHERE topics.topic IS NOT NULL`

	queryWaitingIn = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL) w
		LEFT JOIN messages f ON f.id = w.oldest`
	queryWaitingBefore = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL AND chat_jid = ? AND received_at <= ?) w
		LEFT JOIN messages f ON f.id = w.oldest`
	queryWaitingOut = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending')) w
		LEFT JOIN messages f ON f.id = w.oldest`
	queryWaitingOutBefore = `SELECT w.n, ifnull(w.oldest,0), ifnull(f.chat_jid,''), ifnull(f.received_at,0) FROM (SELECT count(*) AS n, min(id) AS oldest FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ? AND chat_jid = ? AND received_at <= ?) w
		LEFT JOIN messages f ON f.id = w.oldest`
	queryQueuedBefore = `SELECT count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued' AND id < ?1 AND not_before <= ?2`

	queryChat = `SELECT jid, kind, title, ifnull(sticky_topic,''), ifnull(sticky_group,''), ifnull(sticky_at,0)
		FROM chats WHERE jid = ?`
	queryThreadTopic = `SELECT topic FROM topic_threads WHERE chat_jid = ? AND thread_id = ?`
	insertChat       = `INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES (?,?,?,?) ON CONFLICT (jid) DO NOTHING`
	queryState       = `SELECT value FROM router_state WHERE key = ?`
	putState         = `INSERT INTO router_state (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	addState         = `INSERT INTO router_state (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = router_state.value + excluded.value`
	bumpState        = `INSERT INTO router_state (key, value) VALUES (?,1)
		ON CONFLICT (key) DO UPDATE SET value = router_state.value + 1 RETURNING value`
)
