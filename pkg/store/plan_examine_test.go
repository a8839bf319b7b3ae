package store

// examinePlans has the expected plan of every statement in queries_examine.go. Those with SCAN read a partial
// index of rows that are few, or stop at a limit.
func examinePlans() map[string][2]string {
	return map[string][2]string{
		"queryWaitingByPlatform": {queryWaitingByPlatform, "CO-ROUTINE w\nSCAN messages USING INDEX messages_outbox\nSCAN w\n" + messageRow},
		"queryParkedAlone": {queryParkedAlone, "CO-ROUTINE w\nSCAN m USING INDEX messages_parked\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH r USING COVERING INDEX onboarding_pending (chat_jid=?)\nSCAN w\nSEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWantedBefore": {queryWantedBefore, "CO-ROUTINE w\nSCAN messages USING INDEX messages_wanted\nSCAN w\nSEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWaitingRequests": {queryWaitingRequests, "CO-ROUTINE w\nSCAN onboarding_requests USING COVERING INDEX onboarding_pending\nSCAN w\nSEARCH r USING PRIMARY KEY (code=?) LEFT-JOIN\n" +
			"SCALAR SUBQUERY 2\nSCAN onboarding_requests USING INDEX onboarding_pending\nUSE TEMP B-TREE FOR ORDER BY"},

		"queryUndelivered": {queryUndelivered, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)\nSCALAR SUBQUERY 2\nSEARCH messages\n" +
			"SEARCH d USING PRIMARY KEY (message_id=? AND part=?) LEFT-JOIN\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH f USING PRIMARY KEY (message_id=?)"},
		"queryRefused":  {queryRefused, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\nSCALAR SUBQUERY 1\nSEARCH messages"},
		"queryArrivals": {queryArrivals, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\nSCALAR SUBQUERY 1\nSEARCH messages"},
	}
}
