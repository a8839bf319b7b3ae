package store

// The statements on forks of topics.
const (
	queryFork = `SELECT ` + forkColumns + ` FROM forks WHERE chat_jid = ? AND topic = ?`
	// Of a place that forks share, the newest first.
	queryForksInside = `SELECT ` + forkColumns +
		` FROM forks INDEXED BY forks_open WHERE chat_jid = ? AND thread_id = ? AND own_thread = 0 AND ended_at IS NULL
		ORDER BY created_at DESC, topic DESC`
	queryForkOfThread = `SELECT ` + forkColumns + ` ` + forkOfThread + `chat_jid = ? AND thread_id = ? ` + newestFork
	queryOpenForks    = `SELECT topic FROM forks INDEXED BY forks_open WHERE chat_jid = ? AND folder = ? AND ended_at IS NULL ORDER BY created_at, topic LIMIT ?+0`
	// A tab of a web chat stays one when its fork has ended. A topic with a session that never was a fork is one of
	// users.
	queryForkTaken = `SELECT EXISTS (SELECT 1 FROM forks WHERE chat_jid = ?2 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3 AND (ended_at IS NULL OR chat_jid LIKE 'web:%'))
		OR EXISTS (SELECT 1 FROM topic_threads WHERE chat_jid = ?2 AND topic = ?3)
		OR EXISTS (SELECT 1 FROM sessions WHERE group_folder = ?1 AND topic = ?3 AND NOT EXISTS (SELECT 1 FROM forks WHERE folder = ?1 AND topic = ?3))`
	// The first is <topic>#fix, the others end in a number.
	queryLastFork = `SELECT ifnull(max(CASE WHEN topic = ?2 THEN 1 ELSE CAST(substr(topic, length(?2) + 1) AS INTEGER) END), 0)
		FROM forks WHERE chat_jid = ?1 AND topic >= ?2 AND topic < ?2 || ':' AND NOT glob('*[^0-9]*', substr(topic, length(?2) + 1))`
	// Whether a message is in a thread, or may be.
	queryThreadUsed = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_thread WHERE thread_id <> '' AND ` +
		spoken + `
		AND chat_jid = ? AND thread_id = ? AND (out_state IS NULL OR out_state NOT IN ('queued', 'sending', 'failed', 'cancelled')))`
	insertFork = `INSERT INTO forks (chat_jid, topic, folder, thread_id, own_thread, message_id, created_at) VALUES (?,?,?,?,?,?,?)`
	endFork    = `UPDATE forks SET ended_at = ? WHERE chat_jid = ? AND topic = ? AND ended_at IS NULL`
	// Of the newest 1,000 spoken rows of the chat.
	queryLastAnswer = `SELECT id FROM (SELECT id, direction, source, topic, turn_id FROM messages INDEXED BY messages_chat
		WHERE ` + spoken + ` AND chat_jid = ?1 ORDER BY id DESC LIMIT 1000) m
		WHERE m.direction = 'out' AND m.source IN ('agent', 'tool') AND m.topic = ?2
		AND (SELECT folder FROM turns t WHERE t.id = m.turn_id) = ?3 ORDER BY id DESC LIMIT 1`
)
