package store

// forkPlans has the expected plan of every statement in queries_forks.go.
func forkPlans() map[string][2]string {
	return map[string][2]string{
		"queryFork":        {queryFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		"queryForksInside": {queryForksInside, "SEARCH forks USING PRIMARY KEY (chat_jid=?)\nUSE TEMP B-TREE FOR ORDER BY"}, // a few of a chat
		"queryForkTaken": {queryForkTaken, exists + "SEARCH forks USING COVERING INDEX forks_session (folder=? AND topic=?)\nSCALAR SUBQUERY 2\n" +
			"SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)"},
		"insertFork": {insertFork, noRead},
		"deleteFork": {deleteFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		"queryLastAnswer": {queryLastAnswer, "CO-ROUTINE m\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN m\nCORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
	}
}
