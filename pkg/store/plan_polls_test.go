package store

// pollPlans has the expected plan of every statement in queries_polls.go.
func pollPlans() map[string][2]string {
	const pollRow = "SEARCH polls USING INTEGER PRIMARY KEY (rowid=?)"
	return map[string][2]string{
		"queryPoll":             {queryPoll, "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryPollByMessage":    {queryPollByMessage, "SEARCH p USING INDEX polls_message (message_id=?)"},
		"queryPollsInState":     {queryPollsInState, "SEARCH p USING INDEX polls_list (chat_jid=? AND folder=? AND state=? AND id<?)"},
		"queryPolls":            {queryPolls, "SEARCH p USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryAllOpen":          {queryAllOpen, "SEARCH p USING INDEX polls_open (id<?)"},
		"queryPollsDue":         {queryPollsDue, "SEARCH p USING INDEX polls_due (closes_at>? AND closes_at<?)"},
		"queryPollsEnding":      {queryPollsEnding, "SEARCH p USING INDEX polls_ending (id>?)"},
		"queryPollsUndelivered": {queryPollsUndelivered, "SEARCH p USING INDEX polls_open (id>?)\n" + messageRow},
		"queryPollsOpen":        {queryPollsOpen, "SCAN p USING INDEX polls_open\n" + messageRow},
		"queryVoteRows":         {queryVoteRows, "SEARCH messages USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryPollVotes":        {queryPollVotes, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)"},
		"queryPollVote":         {queryPollVote, "SEARCH poll_votes USING PRIMARY KEY (poll_id=? AND voter=?)"},
		"queryPollRef":          {queryPollRef, "SEARCH poll_refs USING PRIMARY KEY (daemon=? AND ref=?)"},
		"queryPollsSending":     {queryPollsSending, "SEARCH m USING INDEX messages_outbox (platform=?)\nSEARCH d USING PRIMARY KEY (message_id=?)"},
		"queryPollCounts":       {queryPollCounts, "SEARCH v USING PRIMARY KEY (poll_id=?)\nSCAN o VIRTUAL TABLE INDEX 1:\nUSE TEMP B-TREE FOR GROUP BY"},
		"queryPollVoterCount":   {queryPollVoterCount, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)"},
		"queryPollVoters": {queryPollVoters, "CO-ROUTINE p\nCO-ROUTINE (subquery-3)\nSEARCH v USING PRIMARY KEY (poll_id=?)\n" +
			"SCAN o VIRTUAL TABLE INDEX 1:\nUSE TEMP B-TREE FOR ORDER BY\nSCAN (subquery-3)\nSCAN p\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryVotesWaiting": {queryVotesWaiting, exists + "SEARCH messages USING INDEX messages_undecided (chat_jid=?)"},
		"insertPoll":        {insertPoll, noRead},
		"insertPollRef":     {insertPollRef, noRead},
		"putPollVote":       {putPollVote, noRead},
		"deletePollVote":    {deletePollVote, "SEARCH poll_votes USING PRIMARY KEY (poll_id=? AND voter=?)"},
		"updateClosePoll":   {updateClosePoll, pollRow},
		"updateEndedPoll":   {updateEndedPoll, pollRow},
	}
}
