package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	storetest.CheckPlans(t, map[string][2]string{
		"queryAsksOpenAt": {queryAsksOpenAt, "CO-ROUTINE m\n" +
			"SEARCH m USING INDEX messages_chat (chat_jid=? AND id<?)\n" +
			"SCAN m\n" +
			"SEARCH a USING INDEX asks_message (message_id=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryPresses": {queryPresses, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryUnsentByPlatform": {queryUnsentByPlatform, "CO-ROUTINE w\n" +
			"SCAN messages USING INDEX messages_outbox\n" +
			"SCAN w\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryParkedAlone": {queryParkedAlone, "CO-ROUTINE w\n" +
			"SCAN m USING INDEX messages_parked\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH r USING COVERING INDEX onboarding_pending (chat_jid=?)\n" +
			"SCAN w\n" +
			"SEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWantedBefore": {queryWantedBefore, "CO-ROUTINE w\n" +
			"SCAN m USING INDEX messages_wanted\n" +
			"SCAN w\n" +
			"SEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWaitingRequests": {queryWaitingRequests, "CO-ROUTINE w\n" +
			"SCAN onboarding_requests USING COVERING INDEX onboarding_pending\n" +
			"SCAN w\n" +
			"SEARCH r USING PRIMARY KEY (code=?) LEFT-JOIN\n" +
			"SCALAR SUBQUERY 2\n" +
			"SCAN onboarding_requests USING INDEX onboarding_pending\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryUndelivered": {queryUndelivered, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH messages\n" +
			"SEARCH d USING PRIMARY KEY (message_id=? AND part=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH f USING PRIMARY KEY (message_id=?)"},
		"queryRefused": {queryRefused, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages"},
		"queryArrivals": {queryArrivals, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages"},
		"queryBroadcastOf": {queryBroadcastOf, "SCAN broadcasts\n" +
			"SCAN json_each EXISTS VIRTUAL TABLE INDEX 1:"},
		// All of a partial index, once per status request.
		"queryUndecided": {queryUndecided, "CO-ROUTINE w\n" +
			"SCAN m USING INDEX messages_undecided\n" +
			"SCAN w\n" +
			"SEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryUndecidedInChat": {queryUndecidedInChat, "CO-ROUTINE w\n" +
			"SEARCH m USING INDEX messages_undecided (chat_jid=?)\n" +
			"SCAN w\n" +
			"SEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryUnsentInChat": {queryUnsentInChat, "CO-ROUTINE w\n" +
			"SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=?)\n" +
			"SCAN w\n" +
			"SEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryUnsent": {queryUnsent, "CO-ROUTINE w\n" +
			"SCAN m USING INDEX messages_outbox\n" +
			"SCAN w\n" +
			"SEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryRunningTurns": {queryRunningTurns, "SCAN t USING INDEX turns_run\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryRunningCount": {queryRunningCount, "SCAN turns USING COVERING INDEX turns_run"},
		// The index is read to its end, the turns are not.
		"queryQueuedTurns": {queryQueuedTurns, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SCAN turns USING COVERING INDEX turns_queued\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryDelegated": {queryDelegated, "SEARCH t USING INDEX turns_root (root_turn_id=?)"},
		// For one message that an operator asks about.
		"queryRunsDuring": {queryRunsDuring, "SEARCH l USING INDEX session_log_topic (folder=? AND topic=?)\n" +
			"SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryOwnReplies":  {queryOwnReplies, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)"},
		"queryQueuedCount": {queryQueuedCount, "SCAN turns USING COVERING INDEX turns_queued"},
	})
}
