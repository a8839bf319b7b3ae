package store

// The statements on forks of topics.
const (
	queryFork        = `SELECT chat_jid, topic, folder, thread_id, own_thread, message_id, created_at FROM forks WHERE chat_jid = ? AND topic = ?`
	queryForksInside = `SELECT topic FROM forks WHERE chat_jid = ? AND thread_id = ? AND own_thread = 0 ORDER BY created_at DESC, topic`
	queryForkTaken   = `SELECT EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?2 AND topic = ?3)`
	insertFork = `INSERT INTO forks (chat_jid, topic, folder, thread_id, own_thread, message_id, created_at) VALUES (?,?,?,?,?,?,?)`
	deleteFork = `DELETE FROM forks WHERE chat_jid = ? AND topic = ?`
	// Of the newest 1,000 rows of the chat.
	queryLastAnswer = `SELECT id FROM (SELECT id, direction, source, topic, turn_id FROM messages INDEXED BY messages_chat WHERE chat_jid = ?1 ORDER BY id DESC LIMIT 1000) m
		WHERE m.direction = 'out' AND m.source IN ('agent', 'tool') AND m.topic = ?2
		AND (SELECT folder FROM turns t WHERE t.id = m.turn_id) = ?3 ORDER BY id DESC LIMIT 1`
)
