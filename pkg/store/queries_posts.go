package store

// The statements of adapters that compare rows with what a platform shows.
const (
	queryPosts = `SELECT ` + messageColumns + ` FROM messages m INDEXED BY messages_platform_id
		WHERE m.chat_jid = ? AND m.platform_id IS NOT NULL AND m.platform_id >= ? AND m.platform_id < ? ORDER BY m.platform_id LIMIT ?+0`
	queryThreadPosts = `SELECT platform_id FROM messages INDEXED BY messages_thread
		WHERE thread_id <> '' AND ` + spoken + ` AND chat_jid = ? AND thread_id = ? AND platform_id IS NOT NULL ORDER BY id DESC LIMIT ?+0`
)
