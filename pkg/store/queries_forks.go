package store

// The statements on forks of topics.
const (
	queryFork = `SELECT ` + forkColumns + ` FROM forks WHERE chat_jid = ? AND topic = ?`
	// Of a place that forks share, the newest first.
	queryForksInside = `SELECT ` + forkColumns +
		` FROM forks INDEXED BY forks_open WHERE chat_jid = ? AND thread_id = ? AND own_thread = 0 AND ended_at IS NULL
		ORDER BY created_at DESC, topic DESC`
	queryForkOfThread = `SELECT ` + forkColumns + ` ` + forkOfThread + `chat_jid = ? AND thread_id = ? ` + newestFork

	endFork = `UPDATE forks SET ended_at = ? WHERE chat_jid = ? AND topic = ? AND ended_at IS NULL`
)
