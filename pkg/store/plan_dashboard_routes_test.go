package store

// dashboardRoutePlans has the plans of the statements in queries_dashboard_routes.go: rows of the audit and messages are
// read from the newest on, as far as the limit asks.
func dashboardRoutePlans() map[string][2]string {
	return map[string][2]string{
		"queryAudit":       {queryAudit, "SEARCH audit USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryAuditWho":    {queryAuditWho, "SEARCH audit USING INDEX audit_who (who=? AND rowid<?)"},
		"queryAuditWhat":   {queryAuditWhat, "SEARCH audit USING INDEX audit_what (what=? AND rowid<?)"},
		"queryOldestAudit": {queryOldestAudit, "SCAN audit"},                                                                                                   // one row
		"deleteOldAudit":   {deleteOldAudit, "SEARCH audit USING INTEGER PRIMARY KEY (rowid=?)\nLIST SUBQUERY 1\nSCAN audit\nSCALAR SUBQUERY 2\nSEARCH audit"}, // as many rows as the limit asks,
		"queryAuditWhats": {queryAuditWhats, "CO-ROUTINE w\nSETUP\nCO-ROUTINE f\nSCAN audit USING COVERING INDEX audit_what\nSCAN f\n" +
			"RECURSIVE STEP\nSCAN w\nCORRELATED SCALAR SUBQUERY 3\nSEARCH a USING COVERING INDEX audit_what (what>?)\nSCAN w"},
		"queryNewestInbound": {queryNewestInbound, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)\nSCALAR SUBQUERY 1\nSEARCH messages\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"},
		"queryDecidedInbound": {queryDecidedInbound, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)\nSCALAR SUBQUERY 1\nSEARCH messages"},
		"queryNewestChats":    {queryNewestChats, "SCAN chats USING INDEX chats_seen"},
	}
}
