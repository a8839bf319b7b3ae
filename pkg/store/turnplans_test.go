package store

// turnPlans has the expected plan of every statement in queries_turns.go.
const chatOfRow = "\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"

func turnPlans() map[string][2]string {
	return map[string][2]string{
		"queryTurn": {queryTurn, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		// Once at start, over a partial index of open turns.
		"queryOpenTurns": {queryOpenTurns, "SCAN t USING INDEX turns_open\nUSE TEMP B-TREE FOR ORDER BY"},

		// A list for operators, newest first: it stops when the page is full.
		"queryTurns":       {queryTurns, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryChatTurns":   {queryChatTurns, "SEARCH t USING INDEX turns_chat (chat_jid=? AND id<?)"},
		"queryFolderTurns": {queryFolderTurns, "SEARCH t USING INDEX turns_folder (folder=? AND id<?)"},

		// of at most 1,000 rows
		"queryLastHome": {queryLastHome, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		"queryLastUser": {queryLastUser, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},

		"queryMark":           {QueryMark, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"updateCancelMark":    {updateCancelMark, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMarkOf":         {queryMarkOf, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryReacted":        {queryReacted, exists + "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid>?)"},
		"queryMarkable":       {queryMarkable, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)" + chatOfRow},
		"queryMarkableOfTurn": {queryMarkableOfTurn, "SEARCH m USING INDEX messages_turn (turn_id=?)" + chatOfRow},
		// Of the rows that wait.
		"queryAsleep": {queryAsleep, "SEARCH m USING INDEX messages_undecided (chat_jid>? AND chat_jid<?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH k USING INDEX messages_target (chat_jid=? AND target_id=?)\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFoldedInto": {queryFoldedInto, "SEARCH t USING INDEX turns_answered_with (answered_with=?)"},

		// All of a partial index: one row per process.
		"queryUnended": {queryUnended, "SCAN r USING INDEX runs_unended"},

		"querySession": {querySession, sessionRow},

		"queryAgentModels": {queryAgentModels, "SEARCH agent_models USING PRIMARY KEY (folder=? AND agent=?)"},

		"insertSystem": {insertSystem, noRead},

		// A list for operators.
		"queryOpenState":   {queryOpenState, "SCAN t USING INDEX turns_open\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFailedState": {queryFailedState, "SEARCH t USING INDEX turns_state (state=? AND id<?)"},

		// At start.
		"queryFailing": {queryFailing, "SCAN group_failures"},
	}
}
