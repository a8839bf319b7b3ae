package store

// Statements about polls and their votes.
const (
	pollColumns = `p.id, p.message_id, p.folder, p.chat_jid, p.topic, p.question, p.options, p.multiple, ifnull(p.closes_at, 0),
		p.state, p.created_at, ifnull(p.closed_at, 0), p.end_pending, p.result`
	queryPoll          = `SELECT ` + pollColumns + ` FROM polls p WHERE p.id = ?`
	queryPollByMessage = `SELECT ` + pollColumns + ` FROM polls p WHERE p.message_id = ?`
	queryPollsInState  = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_list
		WHERE p.chat_jid = ? AND p.folder = ? AND p.state = ? AND p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	queryPollsDue = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_due
		WHERE p.state = 'open' AND p.closes_at IS NOT NULL AND p.closes_at <= ? ORDER BY p.closes_at LIMIT ?+0`
	queryPollsEnding = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_ending
		WHERE p.end_pending = 1 AND p.id > ? ORDER BY p.id LIMIT ?+0`
	queryPollsUndelivered = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND p.id > ? AND m.out_state IN ('failed', 'cancelled') ORDER BY p.id LIMIT ?+0`
	queryPollVotes   = `SELECT voter, name, options, at FROM poll_votes WHERE poll_id = ?`
	queryPollVote    = `SELECT options FROM poll_votes WHERE poll_id = ? AND voter = ?`
	queryPollRef     = `SELECT message_id FROM poll_refs WHERE daemon = ? AND ref = ?`
	queryPollSending = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ? AND kind = 'poll' AND +out_state = 'sending')`
	queryVotesWaiting = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL AND chat_jid = ? AND min(received_at, timestamp) <= ? AND verb IN ('vote', 'reaction'))`

	insertPoll = `INSERT INTO polls (message_id, folder, chat_jid, topic, question, options, multiple, closes_at, state, created_at)
		VALUES (?,?,?,?,?,?,?,?,'open',?)`
	insertPollRef = `INSERT INTO poll_refs (daemon, ref, message_id) VALUES (?,?,?)
		ON CONFLICT (daemon, ref) DO UPDATE SET message_id = excluded.message_id`
	putPollVote = `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?,?,?,?,?)
		ON CONFLICT (poll_id, voter) DO UPDATE SET name = excluded.name, options = excluded.options, at = excluded.at`
	deletePollVote  = `DELETE FROM poll_votes WHERE poll_id = ? AND voter = ?`
	updateClosePoll = `UPDATE polls SET state = 'closed', closed_at = ?, end_pending = 1 WHERE id = ? AND state = 'open'`
	updateEndedPoll = `UPDATE polls SET state = 'closed', closed_at = ifnull(closed_at, ?1), end_pending = 0,
		result = ifnull(?2, result) WHERE id = ?3`
)
