package store

// askPlans has the expected plan of every statement in queries_asks.go.
func askPlans() map[string][2]string {
	return map[string][2]string{
		"queryAsk":          {queryAsk, "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryAskByMessage": {queryAskByMessage, "SEARCH a USING INDEX asks_message (message_id=?)"},
		// At most fifty for a turn; open ones are few.
		"queryTurnAsks": {QueryTurnAsks, "SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryChatAsks": {queryChatAsks, "SCAN a USING INDEX asks_open\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
	}
}
