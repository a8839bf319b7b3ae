package store

// Statements about polls and their votes.
const (
	pollColumns = `p.id, p.message_id, p.folder, p.chat_jid, p.topic, p.question, p.options, p.multiple, ifnull(p.closes_at, 0),
		p.state, p.created_at, ifnull(p.closed_at, 0), p.end_pending, p.result`
	queryPoll          = `SELECT ` + pollColumns + ` FROM polls p WHERE p.id = ?`
	queryPollByMessage = `SELECT ` + pollColumns + ` FROM polls p WHERE p.message_id = ?`
	queryPollsInState  = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_list
		WHERE p.chat_jid = ? AND p.folder = ? AND p.state = ? AND p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	queryPolls   = `SELECT ` + pollColumns + ` FROM polls p WHERE p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	queryAllOpen = `SELECT ` + pollColumns +
		` FROM polls p INDEXED BY polls_open WHERE p.state = 'open' AND p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	queryPollsDue = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_due
		WHERE p.state = 'open' AND p.closes_at IS NOT NULL AND p.closes_at <= ? ORDER BY p.closes_at LIMIT ?+0`
	queryPollsEnding = `SELECT ` + pollColumns + ` FROM polls p INDEXED BY polls_ending
		WHERE p.end_pending = 1 AND p.id > ? ORDER BY p.id LIMIT ?+0`
	queryPollsUndelivered = `SELECT ` + pollColumns +
		` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND p.id > ? AND m.out_state IN ('failed', 'cancelled') ORDER BY p.id LIMIT ?+0`
	// Those that users can see on a platform, the newest first.
	queryPollsOpen = `SELECT ` + pollColumns +
		` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND m.platform = ? AND m.platform_id IS NOT NULL ORDER BY p.id DESC LIMIT ?+0`
	queryVoteRows = `SELECT sender, sender_name, content FROM messages INDEXED BY messages_target
		WHERE chat_jid = ? AND target_id = ? AND direction = 'in' AND verb = 'vote' ORDER BY id`
	queryPollVotes = `SELECT voter, name, options, at FROM poll_votes WHERE poll_id = ?`
	queryPollVote  = `SELECT options FROM poll_votes WHERE poll_id = ? AND voter = ?`
	queryPollRef   = `SELECT message_id FROM poll_refs WHERE daemon = ? AND ref = ?`
	// Those of which a call is under way: a poll that waits for its next attempt has no part that is being sent.
	queryPollsSending = `SELECT m.id FROM messages m INDEXED BY messages_outbox CROSS JOIN deliveries d ON d.message_id = m.id
		WHERE m.out_state IN ('queued', 'sending') AND m.platform = ?1 AND (?2 = '' OR m.chat_jid = ?2) AND m.kind = 'poll' AND d.state = 'sending' LIMIT 100`
	// Options that count of a poll's votes: of several in a poll that takes one, the last.
	countedOptions = `FROM poll_votes v CROSS JOIN json_each(v.options) o ON TRUE WHERE v.poll_id = ?1 AND json_type(v.options) = 'array' AND o.type = 'integer'
		AND (?2 OR o.key = json_array_length(v.options) - 1)`
	queryPollCounts     = `SELECT o.value, count(*) ` + countedOptions + ` GROUP BY o.value`
	queryPollVoterCount = `SELECT count(*) FROM poll_votes WHERE poll_id = ? AND json_array_length(options) > 0`
	queryPollVoters     = `SELECT option, voter, name FROM (SELECT o.value AS option, v.voter, v.name,
		row_number() OVER (PARTITION BY o.value ORDER BY v.at, v.voter) AS place ` + countedOptions + `) p WHERE place <= ?3 ORDER BY option, place`
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
