package store

// pollPlans has the expected plan of every statement in queries_polls.go.
func pollPlans() map[string][2]string {
	return map[string][2]string{

		"queryPollByMessage": {queryPollByMessage, "SEARCH p USING INDEX polls_message (message_id=?)"},

		"queryVoteRows":  {queryVoteRows, "SEARCH messages USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryPollVotes": {queryPollVotes, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)"},

		"queryPollCounts":     {queryPollCounts, "SEARCH v USING PRIMARY KEY (poll_id=?)\nSCAN o VIRTUAL TABLE INDEX 1:\nUSE TEMP B-TREE FOR GROUP BY"},
		"queryPollVoterCount": {queryPollVoterCount, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)"},
	}
}
