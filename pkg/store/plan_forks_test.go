package store

// forkPlans has the expected plan of every statement in queries_forks.go.
func forkPlans() map[string][2]string {
	return map[string][2]string{
		"queryFork":         {queryFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		"queryForksInside":  {queryForksInside, "SEARCH forks USING INDEX forks_open (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY"}, // a few of a place
		"queryForkOfThread": {queryForkOfThread, "SEARCH n USING INDEX forks_own_thread (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryOpenForks":    {queryOpenForks, "SEARCH forks USING INDEX forks_open (chat_jid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryForkTaken": {queryForkTaken, exists + "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)\nSCALAR SUBQUERY 2\n" +
			"SEARCH forks USING INDEX forks_session (folder=? AND topic=?)\nSCALAR SUBQUERY 3\nSEARCH topic_threads USING PRIMARY KEY (chat_jid=?)\n" +
			"SCALAR SUBQUERY 5\nSEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)\n" +
			"SCALAR SUBQUERY 4\nSEARCH forks USING COVERING INDEX forks_session (folder=? AND topic=?)"},
		"queryLastFork":   {queryLastFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic>? AND topic<?)"},
		"queryThreadUsed": {queryThreadUsed, exists + "SEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=?)"},
		"insertFork":      {insertFork, noRead},
		"endFork":         {endFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		"queryLastAnswer": {queryLastAnswer, "CO-ROUTINE m\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN m\nCORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
	}
}
