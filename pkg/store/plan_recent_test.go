package store

// recentPlans has the plans of the statements in queries_window.go: index entries
// newest first, at most 1,000 and only as far as the limit asks.
func recentPlans() map[string][2]string {
	return map[string][2]string{
		"queryChange": {queryChange, messageRow + "\nSEARCH e USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
	}
}
