package store

// parkedPlans has the expected plan of every statement in queries_parked.go.
func parkedPlans() map[string][2]string {
	return map[string][2]string{
		"queryParkedChats": {queryParkedChats, "CO-ROUTINE parked\nSETUP\nSEARCH messages USING COVERING INDEX messages_parked\n" +
			"RECURSIVE STEP\nSCAN parked\nCORRELATED SCALAR SUBQUERY 2\nSEARCH messages USING COVERING INDEX messages_parked (chat_jid>?)\n" +
			"SCAN parked\nCORRELATED SCALAR SUBQUERY 4\n" + // one row per chat
			"SEARCH onboarding_requests USING COVERING INDEX onboarding_pending (chat_jid=?)"},
		"queryParked":      {queryParked, "SEARCH m USING INDEX messages_parked (chat_jid=?)"},
		"queryParkedIDs":   {queryParkedIDs, "SEARCH messages USING COVERING INDEX messages_parked (chat_jid=?)"},
		"updateTakeUp":     {updateTakeUp, "SEARCH messages USING INDEX messages_parked (chat_jid=?)"},
		"updateTakeUpRow":  {updateTakeUpRow, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateDropParked": {updateDropParked, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
	}
}
