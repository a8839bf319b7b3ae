package store

// chatPlans has the expected plan of every statement in queries_chats.go.
func chatPlans() map[string][2]string {
	return map[string][2]string{
		"queryChats":      {queryChats, "SEARCH chats USING INDEX chats_seen ((last_seen_at,jid)<(?,?))"},
		"queryChatTitles": {queryChatTitles, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH c USING PRIMARY KEY (jid=?)"},
		// One step per platform.
		"queryPlatforms": {queryPlatforms, "CO-ROUTINE platforms\nSETUP\nSEARCH chats USING PRIMARY KEY\nRECURSIVE STEP\nSCAN p\nCORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH chats USING PRIMARY KEY (jid>?)\nSCAN platforms"},
		"queryAnswered": {queryAnswered, exists + "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH e USING PRIMARY KEY (jid>? AND jid<?)\n" +
			"SCALAR SUBQUERY 2\nSCAN j VIRTUAL TABLE INDEX 1:\nSEARCH c USING PRIMARY KEY (jid>? AND jid<?)\n" +
			"SEARCH t USING COVERING INDEX turns_chat (chat_jid=?)\nSEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryOpenTurnCount":  {queryOpenTurnCount, "CO-ROUTINE o\nSEARCH turns USING INDEX turns_open (chat_jid=?)\nSCAN o"},
		"queryOpenWindows":    {queryOpenWindows, "SEARCH e USING INDEX chat_reply_state_open ((engaged_until,jid,topic)>(?,?,?))\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"},
		"queryFolderSessions": {queryFolderSessions, "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic>?)"},
		"queryFolderRuns": {queryFolderRuns, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)\nLIST SUBQUERY 2\nSEARCH turns USING INDEX turns_folder (folder=?)\n" +
			"SEARCH l USING INDEX sqlite_autoindex_session_log_1 (run_id=?) LEFT-JOIN"},
		"queryIsForum":        {queryIsForum, exists + "SEARCH platform_threads USING PRIMARY KEY (chat_jid=?)"},
		"queryLastFolderTurn": {queryLastFolderTurn, "SEARCH turns USING INDEX turns_folder (folder=?)"},
	}
}
