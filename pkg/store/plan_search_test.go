package store

// searchPlans has the expected plan of every statement in queries_search.go.
func searchPlans() map[string][2]string {
	return map[string][2]string{
		// A table of one row.
		"querySearchState":   {QuerySearchState, "SCAN search_state"},
		"querySearchNext":    {querySearchNext, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"updateSearchState":  {updateSearchState, "SCAN search_state"},
		"insertSearchRows":   {insertSearchRows, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		"querySearchDeleted": {QuerySearchDeleted, "CO-ROUTINE d\nSCAN search_deleted\nSCAN d"},
		"deleteSearchRows":   {deleteSearchRows, "SCAN message_search VIRTUAL TABLE INDEX 1:\nLIST SUBQUERY 1\nSEARCH search_deleted USING INTEGER PRIMARY KEY (rowid<?)"},
		"deleteSearchTexts":  {deleteSearchTexts, "SEARCH search_deleted USING INTEGER PRIMARY KEY (rowid<?)"},

		"querySearchHits": {QuerySearchHits, "SCAN message_search VIRTUAL TABLE INDEX 393219:DESC"},

		"queryListed":      {QueryListed, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\nSEARCH d USING COVERING INDEX deliveries_failed (error_class=? AND message_id=?)"},
		"queryListedFound": {QueryListedFound, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH h USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\nSEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\nCORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY 3\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY 4\nSEARCH d USING COVERING INDEX deliveries_failed (error_class=? AND message_id=?)"},

		"queryCopyOf": {queryCopyOf, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH n USING INDEX messages_derived (derived_from=?)"},
	}
}
