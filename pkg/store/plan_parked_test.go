package store

// parkedPlans has the expected plan of every statement in queries_parked.go.
func parkedPlans() map[string][2]string {
	return map[string][2]string{
		"queryParkedIDs": {QueryParkedIDs, "SEARCH messages USING COVERING INDEX messages_parked (chat_jid=?)"},
	}
}
