package store

// recentPlans has the plans of the statements in queries_window.go: index entries
// newest first, at most 1,000 and only as far as the limit asks.
func recentPlans() map[string][2]string {
	recent := func(index string) string {
		return "CO-ROUTINE r\nSEARCH messages USING " + index + "\nSCAN r\n" + messageRow + "\nSEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"
	}
	return map[string][2]string{
		"queryRecent":       {queryRecent, recent("COVERING INDEX messages_chat (chat_jid=? AND id<?)")},
		"queryRecentThread": {queryRecentThread, recent("INDEX messages_thread (chat_jid=? AND thread_id=? AND id<?)")},
		// all rows of the chat's threads, once for each reading of its history; as many entries to order as it has threads
		"queryRecentThreads": {queryRecentThreads, "CO-ROUTINE t\nSEARCH messages USING INDEX messages_thread (chat_jid=?)\nSCAN t\n" + "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryRecentTopic":   {queryRecentTopic, recent("INDEX messages_web (chat_jid=? AND topic=? AND id<?)")},
		"queryRecentOpening": {queryRecentOpening, recent("INTEGER PRIMARY KEY (rowid=?)")},
		"queryPosts":         {queryPosts, "SEARCH m USING INDEX messages_platform_id (chat_jid=? AND platform_id>? AND platform_id<?)"},
		"queryThreadPosts":   {queryThreadPosts, "SEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=?)"},
		"queryRecentParts":   {queryRecentParts, "SCAN own VIRTUAL TABLE INDEX 1:\nSEARCH d USING PRIMARY KEY (message_id=?)"},
		"queryChange": {queryChange, messageRow + "\nSEARCH e USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
	}
}
