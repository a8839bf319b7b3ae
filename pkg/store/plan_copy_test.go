package store

// copyPlans has the expected plans of the statements in queries_copy.go. They scan partial indexes of what is open.
func copyPlans() map[string][2]string {
	return map[string][2]string{
		"updateSkipIDs":           {updateSkipIDs, "SCAN sqlite_sequence"},
		"updateCancelParts":       {updateCancelParts, "SEARCH deliveries USING PRIMARY KEY (message_id=?)\nLIST SUBQUERY 1\nSCAN messages USING INDEX messages_outbox"},
		"updateCancelOutbound":    {updateCancelOutbound, "SCAN messages USING INDEX messages_outbox\nCORRELATED SCALAR SUBQUERY 1\nSEARCH d USING PRIMARY KEY (message_id=?)"},
		"deleteOpenSystem":        {deleteOpenSystem, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)\nLIST SUBQUERY 1\nSCAN turns USING INDEX turns_open"},
		"updateReleaseOpenSystem": {updateReleaseOpenSystem, "SEARCH system_messages USING COVERING INDEX system_messages_turn (turn_id=?)\nLIST SUBQUERY 1\nSCAN turns USING INDEX turns_open"},
		"updateCancelTurns":       {updateCancelTurns, "SCAN turns USING INDEX turns_open"},
		"updateDropUndecided":     {updateDropUndecided, "SCAN messages USING INDEX messages_undecided\nSCALAR SUBQUERY 1\nSEARCH router_state USING PRIMARY KEY (key=?)"},
		"updateWithdrawApprovals": {updateWithdrawApprovals, "SCAN onboarding_requests USING INDEX onboarding_pending"},
	}
}
