package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement: each is carried out once, on a copy.
func TestQueryPlans(t *testing.T) {
	storetest.CheckPlans(t, map[string][2]string{
		// All rows of a copy, once.
		"queryCountMessages": {queryCountMessages, "SCAN messages USING COVERING INDEX messages_chat"},
		"updateSkipIDs":      {updateSkipIDs, "SCAN sqlite_sequence"},
		"updateCancelParts": {updateCancelParts, "SEARCH deliveries USING PRIMARY KEY (message_id=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SCAN messages USING INDEX messages_outbox"},
		"updateCancelOutbound": {updateCancelOutbound, "SCAN messages USING INDEX messages_outbox\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)"},
		"deleteOpenSystem": {deleteOpenSystem, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SCAN turns USING INDEX turns_open"},
		"updateReleaseOpenSystem": {updateReleaseOpenSystem, "SEARCH system_messages USING COVERING INDEX system_messages_turn (turn_id=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SCAN turns USING INDEX turns_open"},
		"updateCancelTurns": {updateCancelTurns, "SCAN turns USING INDEX turns_open"},
		"updateDropUndecided": {updateDropUndecided, "SCAN messages USING INDEX messages_undecided\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH router_state USING PRIMARY KEY (key=?)"},
		"updateWithdrawApprovals": {updateWithdrawApprovals, "SCAN onboarding_requests USING INDEX onboarding_pending"},
	})
}
