package store

// Statements about polls and their votes.
const (
	PollColumns = `p.id, p.message_id, p.folder, p.chat_jid, p.topic, p.question, p.options, p.multiple, ifnull(p.closes_at, 0),
		p.state, p.created_at, ifnull(p.closed_at, 0), p.end_pending, p.result`

	queryPollByMessage = `SELECT ` + PollColumns + ` FROM polls p WHERE p.message_id = ?`

	queryVoteRows = `SELECT sender, sender_name, content FROM messages INDEXED BY messages_target
		WHERE chat_jid = ? AND target_id = ? AND direction = 'in' AND verb = 'vote' ORDER BY id`
	queryPollVotes = `SELECT voter, name, options, at FROM poll_votes WHERE poll_id = ?`

	// Options that count of a poll's votes: of several in a poll that takes one, the last.
	CountedOptions = `FROM poll_votes v CROSS JOIN json_each(v.options) o ON TRUE WHERE v.poll_id = ?1 AND json_type(v.options) = 'array' AND o.type = 'integer'
		AND (?2 OR o.key = json_array_length(v.options) - 1)`
	queryPollCounts     = `SELECT o.value, count(*) ` + CountedOptions + ` GROUP BY o.value`
	queryPollVoterCount = `SELECT count(*) FROM poll_votes WHERE poll_id = ? AND json_array_length(options) > 0`
)
