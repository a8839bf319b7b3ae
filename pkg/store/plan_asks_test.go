package store

// askPlans has the expected plan of every statement in queries_asks.go.
func askPlans() map[string][2]string {
	const askRow = "SEARCH asks USING INTEGER PRIMARY KEY (rowid=?)"
	return map[string][2]string{
		"queryAsk":          {queryAsk, "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryAskByMessage": {queryAskByMessage, "SEARCH a USING INDEX asks_message (message_id=?)"},
		// At most fifty for a turn; open ones are few.
		"queryTurnAsks":       {queryTurnAsks, "SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryChatAsks":       {queryChatAsks, "SCAN a USING INDEX asks_open\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFolderOpenAsks": {queryFolderOpenAsks, "SCAN a USING INDEX asks_open\nSEARCH t USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryAsksDue":        {queryAsksDue, "SCAN a USING INDEX asks_open\nCORRELATED SCALAR SUBQUERY 1\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryOpenAsks":       {queryOpenAsks, "SCAN a USING INDEX asks_open\nUSE TEMP B-TREE FOR ORDER BY"},
		"updateAskWho":        {updateAskWho, askRow},
		"queryRunOpenAsks":    {queryRunOpenAsks, "SEARCH t USING COVERING INDEX turns_run (run_id=?)\nSEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)"},
		"queryAsksOpenAt":     {queryAsksOpenAt, "CO-ROUTINE m\nSEARCH m USING INDEX messages_chat (chat_jid=? AND id<?)\nSCAN m\nSEARCH a USING INDEX asks_message (message_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"querySaidSince":      {querySaidSince, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)"},
		"queryPresses":        {queryPresses, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"insertAsk":           {insertAsk, noRead},
		"updateAnswerAsk":     {updateAnswerAsk, askRow},
		"updateExpireAsk":     {updateExpireAsk, askRow},
		"updateCancelAsk":     {updateCancelAsk, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"upsertAsking":        {upsertAsking, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateAsked":         {updateAsked, "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 1\nSEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)"},
	}
}
