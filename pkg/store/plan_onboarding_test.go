package store

// requestTitle is where a request finds its chat's title.
const requestTitle = "\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"

// onboardingPlans has the expected plan of every statement in queries_onboarding.go.
func onboardingPlans() map[string][2]string {
	return map[string][2]string{
		"queryPendingRequest": {queryPendingRequest, "SEARCH r USING INDEX onboarding_pending (chat_jid=?)" + requestTitle},

		"queryLastDecided": {queryLastDecided, "SEARCH r USING INDEX onboarding_chat (chat_jid=?)" + requestTitle},
		// As far as the limit asks.
		"queryRequests": {queryRequests, "SCAN r USING INDEX onboarding_created" + requestTitle},

		// Once for each operator of a new request, of which there are few within an hour.
		"queryDirectChat": {queryDirectChat, "SCAN c\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH i USING INDEX messages_chat (chat_jid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		// As far as the chat's last inbound message.
		"queryLastVerb": {queryLastVerb, "SEARCH messages USING INDEX messages_chat (chat_jid=?)"},

		"updateMergeRequests": {updateMergeRequests, "SEARCH onboarding_requests USING INDEX onboarding_pending (chat_jid=?)\nSCALAR SUBQUERY 1\n" +
			"SEARCH o USING INDEX onboarding_pending (chat_jid=?)\nSEARCH n USING INDEX onboarding_pending (chat_jid=?)"},
		"insertAudit": {insertAudit, noRead},
	}
}
