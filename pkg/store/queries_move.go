package store

// Statements about chats that were moved.
const (
	queryAlias    = `SELECT new_jid, moving FROM chat_aliases WHERE old_jid = ?`
	queryAnyAlias = `SELECT EXISTS (SELECT 1 FROM chat_aliases)`
	queryMovingTo = `SELECT old_jid FROM chat_aliases INDEXED BY chat_aliases_moving WHERE moving = 1 AND new_jid = ?`
	putAlias      = `INSERT INTO chat_aliases (old_jid, new_jid, moving) VALUES (?,?,1)
		ON CONFLICT (old_jid) DO UPDATE SET new_jid = excluded.new_jid, moving = 1`
	deleteAlias  = `DELETE FROM chat_aliases WHERE old_jid = ?`
	updateMoving = `UPDATE chat_aliases SET moving = ?1 WHERE old_jid = ?2 AND moving <> ?1`
	queryAliases = `SELECT old_jid, new_jid, moving FROM chat_aliases`

	// All former addresses: there are few.
	queryUnmoved = `SELECT a.old_jid FROM chat_aliases a WHERE a.moving = 1
		OR EXISTS (SELECT 1 FROM messages INDEXED BY messages_chat WHERE chat_jid = a.old_jid)
		OR EXISTS (SELECT 1 FROM turns INDEXED BY turns_chat WHERE chat_jid = a.old_jid)
		OR EXISTS (SELECT 1 FROM chats WHERE jid = a.old_jid)
		OR EXISTS (SELECT 1 FROM chat_reply_state WHERE jid = a.old_jid)`

	queryUndecidedIDs = `SELECT id FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL AND chat_jid = ? ORDER BY id LIMIT ?+0`
	queryUnsettledIDs = `SELECT id FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?||'' AND chat_jid = ? ORDER BY thread_id, id LIMIT ?+0`
	queryMessageIDs  = `SELECT id FROM messages INDEXED BY messages_chat WHERE chat_jid = ? ORDER BY id LIMIT ?+0`
	queryOpenTurnIDs = `SELECT id FROM turns INDEXED BY turns_open
		WHERE state IN ('queued', 'running') AND chat_jid = ? ORDER BY id LIMIT ?+0`
	queryTurnIDs = `SELECT id FROM turns INDEXED BY turns_chat WHERE chat_jid = ? ORDER BY id LIMIT ?+0`

	// Whether the new address has the message already: an undecided row of the former
	// address is a duplicate then.
	queryMovedBefore = `SELECT EXISTS (SELECT 1 FROM messages o WHERE o.chat_jid = ? AND o.platform_id = 'old:' || m.platform_id)
		FROM messages m WHERE m.id = ? AND m.direction = 'in' AND m.disposition IS NULL AND m.platform_id IS NOT NULL`
	updateMoveMessage = `UPDATE messages SET chat_jid = ?1, reply_to_id = 'old:' || reply_to_id, target_id = 'old:' || target_id,
		platform_id = CASE WHEN EXISTS (SELECT 1 FROM messages o WHERE o.chat_jid = ?1 AND o.platform_id = 'old:' || messages.platform_id)
		THEN 'old:' || platform_id || ':' || id ELSE 'old:' || platform_id END WHERE id = ?2`
	updateMoveDeliveries = `UPDATE deliveries SET platform_id = 'old:' || platform_id WHERE message_id = ? AND platform_id IS NOT NULL`
	updateMoveTurn       = `UPDATE turns SET chat_jid = ?, reply_to = 'old:' || reply_to WHERE id = ?`
	updateMovePreviews   = `UPDATE previews SET chat_jid = ?, platform_id = 'old:' || platform_id WHERE state = 'open' AND turn_id = ?`
	updateMoveRuns       = `UPDATE runs SET chat_jid = ? WHERE chat_jid = ? AND ended_at IS NULL`
)
