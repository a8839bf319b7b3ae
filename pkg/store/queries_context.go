package store

// Statements about active context objects. A chat has about a hundred of them.
const (
	contextColumns = `SELECT chat_id, object_id, kind, topic_id, ifnull(source_message_id, 0), label, url, created_at, last_touched_at,
		activation_reasons, ifnull(created_by_user_id, ''), created_by_bot, ifnull(closed_at, 0), ifnull(due_at, 0), active_until
		FROM context_objects`

	// All of them, once at start, chat by chat.
	queryContextObjects  = contextColumns + ` WHERE active_until+0 > ? ORDER BY chat_id, object_id`
	queryContextOfChat   = contextColumns + ` WHERE chat_id = ? AND active_until+0 > ? ORDER BY object_id`
	queryContextObject   = contextColumns + ` WHERE chat_id = ? AND object_id = ?`
	queryContextOfSource = contextColumns +
		` WHERE chat_id = ?1 AND kind = ?2 AND source_message_id = ?3 AND active_until > ?4
		ORDER BY last_touched_at DESC LIMIT 1`
	queryContextIDsOf = `SELECT object_id FROM context_objects WHERE chat_id = ? AND source_message_id = ? ORDER BY object_id`
	// Those of a chat beyond a number, open polls last.
	queryContextExcess = `SELECT object_id FROM context_objects WHERE chat_id = ?1 AND object_id <> ?2 AND active_until > ?3
		ORDER BY active_until = 9223372036854775807 DESC, last_touched_at DESC, object_id LIMIT 9223372036854775807 OFFSET ?4+0`
	putContextObject = `INSERT INTO context_objects (chat_id, object_id, kind, topic_id, source_message_id, label, url, created_at,
		last_touched_at, activation_reasons, created_by_user_id, created_by_bot, closed_at, due_at, active_until, ttl_class)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_id, object_id) DO UPDATE SET kind = excluded.kind, topic_id = excluded.topic_id,
		source_message_id = excluded.source_message_id, label = excluded.label, url = excluded.url, created_at = excluded.created_at,
		last_touched_at = excluded.last_touched_at, activation_reasons = excluded.activation_reasons,
		created_by_user_id = excluded.created_by_user_id, created_by_bot = excluded.created_by_bot, closed_at = excluded.closed_at,
		due_at = excluded.due_at, active_until = excluded.active_until, ttl_class = excluded.ttl_class`
	deleteContextObject = `DELETE FROM context_objects WHERE chat_id = ? AND object_id = ?`
	deleteEndedContext  = `DELETE FROM context_objects WHERE (chat_id, object_id) IN
		(SELECT chat_id, object_id FROM context_objects INDEXED BY context_objects_active WHERE active_until <= ? LIMIT ?+0)`
	deleteEndedOfChat    = `DELETE FROM context_objects WHERE chat_id = ? AND active_until <= ?`
	deleteUnmovedContext = `DELETE FROM context_objects WHERE chat_id = ?`

	// Threads of the platform or bound ones, else a topic of one of the last turns; the topic of a
	// delegated turn is none of the chat's.
	queryChatHasTopics = `SELECT EXISTS (SELECT 1 FROM platform_threads WHERE chat_jid = ?1)
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?1)
		OR EXISTS (SELECT 1 FROM (SELECT topic, kind FROM turns INDEXED BY turns_chat WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 100) t
			WHERE topic <> '' AND kind <> 'delegated' AND NOT (glob('#d[0-9]*', topic) AND NOT glob('#d*[^0-9]*', topic)))`
)
