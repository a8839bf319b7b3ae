package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	storetest.CheckPlans(t, map[string][2]string{
		"queryChats": {queryChats, "SEARCH chats USING INDEX chats_seen ((last_seen_at,jid)<(?,?))"},
		// One step per platform.
		"queryPlatforms": {queryPlatforms, "CO-ROUTINE platforms\n" +
			"SETUP\n" +
			"SEARCH chats USING PRIMARY KEY\n" +
			"RECURSIVE STEP\n" +
			"SCAN p\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH chats USING PRIMARY KEY (jid>?)\n" +
			"SCAN platforms"},
		"queryTitles": {queryTitles, "SEARCH chats USING PRIMARY KEY (jid=?)"},
		// One step per sender.
		"querySenders": {querySenders, "CO-ROUTINE senders\n" +
			"SETUP\n" +
			"SEARCH messages USING COVERING INDEX messages_sender\n" +
			"RECURSIVE STEP\n" +
			"SCAN senders\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING COVERING INDEX messages_sender (sender>?)\n" +
			"SCAN senders\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH messages USING COVERING INDEX messages_sender (sender=?)"},
		"queryAnswered": {queryAnswered, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH e USING PRIMARY KEY (jid>? AND jid<?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH c USING PRIMARY KEY (jid>? AND jid<?)\n" +
			"SEARCH t USING COVERING INDEX turns_chat (chat_jid=?)\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryOpenWindows": {queryOpenWindows, "SEARCH e USING INDEX chat_reply_state_open ((engaged_until,jid,topic)>(?,?,?))\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"},
		"queryFolderSessions": {queryFolderSessions, "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic>?)"},
		"queryFolderRuns": {queryFolderRuns, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"LIST SUBQUERY 2\n" +
			"SEARCH turns USING INDEX turns_folder (folder=?)\n" +
			"SEARCH l USING INDEX sqlite_autoindex_session_log_1 (run_id=?) LEFT-JOIN"},
		"queryLastFolderTurn": {queryLastFolderTurn, "SEARCH turns USING INDEX turns_folder (folder=?)"},
		// as many rows as the limit asks,
		"queryAuditWhats": {queryAuditWhats, "CO-ROUTINE w\n" +
			"SETUP\n" +
			"CO-ROUTINE f\n" +
			"SCAN audit USING COVERING INDEX audit_what\n" +
			"SCAN f\n" +
			"RECURSIVE STEP\n" +
			"SCAN w\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH a USING COVERING INDEX audit_what (what>?)\n" +
			"SCAN w"},
		"queryNewestInbound": {queryNewestInbound, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"},
		"queryLastRuntimes": {queryLastRuntimes, "SCAN runs"},
		"queryPolls":        {queryPolls, "SEARCH p USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryAllOpen":      {queryAllOpen, "SEARCH p USING INDEX polls_open (id<?)"},
		"querySearchWaiting": {querySearchWaiting, "CO-ROUTINE n\n" +
			"SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCAN n"},
		"queryListAll":         {queryListAll, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		"queryListChat":        {queryListChat, "SEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id>? AND id<?)"},
		"queryListSender":      {queryListSender, "SEARCH messages USING COVERING INDEX messages_sender (sender=? AND id>? AND id<?)"},
		"queryListFolder":      {queryListFolder, "SEARCH messages USING COVERING INDEX messages_routed (routed_to=? AND decision_seq<?)"},
		"queryListDropped":     {queryListDropped, "SEARCH messages USING COVERING INDEX messages_dropped (reason=? AND id>? AND id<?)"},
		"queryListUndelivered": {queryListUndelivered, "SEARCH messages USING COVERING INDEX messages_undelivered (out_state=? AND id>? AND id<?)"},
		// All of what waits: three partial indexes.
		"queryListUnsent": {queryListUnsent, "SCAN messages USING INDEX messages_outbox\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryListUndecided": {queryListUndecided, "SCAN messages USING INDEX messages_undecided\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryListParked": {queryListParked, "SCAN messages USING COVERING INDEX messages_parked\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		// Of rows with several failed parts.
		"queryListFailed": {queryListFailed, "SEARCH deliveries USING COVERING INDEX deliveries_failed (error_class=? AND message_id>? AND message_id<?)\n" +
			"USE TEMP B-TREE FOR DISTINCT"},
		"queryMessageCounts": {queryMessageCounts, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)\n" +
			"USE TEMP B-TREE FOR GROUP BY"},
		"queryTurnTimes": {queryTurnTimes, "SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryTurnAfter":    {queryTurnAfter, "SEARCH turns USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryLastTurn":     {queryLastTurn, "SEARCH turns"},
		"queryGroupDollars": {queryGroupDollars, "SEARCH spend USING PRIMARY KEY (day>?)"},
		// Of the last 1,000 rows of a chat.
		"queryHookTurns": {queryHookTurns, "CO-ROUTINE n\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"USE TEMP B-TREE FOR count(DISTINCT)\n" +
			"SCAN n"},
		"queryLastHookDelivery": {queryLastHookDelivery, "SEARCH messages USING INDEX messages_chat (chat_jid=?)"},
		"queryIDAfter":          {queryIDAfter, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"a count": {countOf(queryListDropped), "CO-ROUTINE n\n" +
			"SEARCH messages USING COVERING INDEX messages_dropped (reason=? AND id>? AND id<?)\n" +
			"SCAN n"},
		"queryDroppedReasons": {queryDroppedReasons, "CO-ROUTINE reasons\n" +
			"SETUP\n" +
			"SEARCH messages USING COVERING INDEX messages_dropped\n" +
			"RECURSIVE STEP\n" +
			"SCAN reasons\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING COVERING INDEX messages_dropped (reason>?)\n" +
			"SCAN reasons"},
		// All of a partial index: as many as there are problems.
		"queryOpenAlerts": {queryOpenAlerts, "SCAN alerts USING INDEX alerts_open\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryPendingAlerts": {queryPendingAlerts, "MERGE (UNION ALL)\n" +
			"LEFT\n" +
			"SCAN a USING INDEX alerts_open\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH n USING PRIMARY KEY (operator=? AND alert_id=? AND ended=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY\n" +
			"RIGHT\n" +
			"SEARCH a USING INDEX alerts_ended (ended_at>?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH n USING PRIMARY KEY (operator=? AND alert_id=? AND ended=?)\n" +
			"SEARCH n EXISTS USING PRIMARY KEY (operator=? AND alert_id=? AND ended=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		// As many as an operator got within an hour.
		"queryAlertMessages": {queryAlertMessages, "USE TEMP B-TREE FOR count(DISTINCT)\n" +
			"SEARCH alert_notices USING INDEX alert_notices_at (operator=? AND at>?)"},
		// All of them: a few browsers, and what they were sent in an hour.
		"queryPushDevices":      {queryPushDevices, "SCAN push_subscriptions"},
		"queryCountPushDevices": {queryCountPushDevices, "SCAN push_subscriptions"},
		"queryPushNotices":      {queryPushNotices, "SCAN push_notices USING COVERING INDEX push_notices_at"},
		"queryForgetPushes": {queryForgetPushes, "SEARCH push_notices USING COVERING INDEX push_notices_at (at<?)\n" +
			"LIST SUBQUERY 1\n" +
			"SCAN alerts USING INDEX alerts_open\n" +
			"CREATE BLOOM FILTER"},
		// Of the newest 2,000 turns, and of the questions and problems that are open.
		"queryPushEvents": {queryPushEvents, "COMPOUND QUERY\n" +
			"LEFT-MOST SUBQUERY\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH turns\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH g USING PRIMARY KEY (folder=?) LEFT-JOIN\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH a USING INDEX messages_turn (turn_id=?)\n" +
			"UNION ALL\n" +
			"SCAN a USING INDEX asks_open\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH g USING PRIMARY KEY (folder=?) LEFT-JOIN\n" +
			"UNION ALL\n" +
			"SCAN alerts USING INDEX alerts_open"},
		// Of the newest 1,000 messages of a sender.
		"querySenderChats": {querySenderChats, "CO-ROUTINE n\n" +
			"SEARCH messages USING COVERING INDEX messages_sender (sender=?)\n" +
			"SCAN n\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR GROUP BY\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"querySenderTurns": {querySenderTurns, "CO-ROUTINE n\n" +
			"SEARCH messages USING COVERING INDEX messages_sender (sender=?)\n" +
			"SCAN n\n" +
			"SEARCH t USING INDEX turns_trigger (trigger_message_id=?)"},
		"querySenderSpend": {querySenderSpend, "CO-ROUTINE n\n" +
			"SEARCH messages USING COVERING INDEX messages_sender (sender=?)\n" +
			"SCAN n\n" +
			"SEARCH t USING INDEX turns_trigger (trigger_message_id=?)"},
		"queryChatPolls": {queryChatPolls, "SEARCH p USING INDEX polls_chat (chat_jid=?)"},
		"queryChatSpend": {queryChatSpend, "SEARCH spend USING INDEX spend_chat (chat_jid=? AND day>? AND day<?)"},
		"queryWebBefore": {queryWebBefore, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryWebTopicBefore": {queryWebTopicBefore, "SEARCH m USING INDEX messages_web (chat_jid=? AND topic=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryWebAfter": {queryWebAfter, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryChangesOfRow":  {queryChangesOfRow, "SEARCH m USING INDEX messages_derived (derived_from=?)"},
		"queryChangesOfPost": {queryChangesOfPost, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryWebEnd": {queryWebEnd, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING COVERING INDEX messages_chat (chat_jid=?)"},
		// All groups, with one look-up each.
		"queryWebChats": {queryWebChats, "SCAN g\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH m USING COVERING INDEX messages_chat (chat_jid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryWebMoved": {queryWebMoved, "SEARCH m USING INDEX messages_derived (derived_from=?)"},
		"queryNewRows":  {queryNewRows, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		// Of one platform, in the order of the index: as many as are being delivered.
		"queryWebUndelivered": {queryWebUndelivered, "SEARCH messages USING INDEX messages_outbox (platform=?)"},
		// One step per topic, not per row.
		"queryWebTopics": {queryWebTopics, "CO-ROUTINE topics\n" +
			"SETUP\n" +
			"SEARCH messages USING INDEX messages_web (chat_jid=?)\n" +
			"RECURSIVE STEP\n" +
			"SCAN topics\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING INDEX messages_web (chat_jid=? AND topic>?)\n" +
			"SCAN topics\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH messages USING INDEX messages_web (chat_jid=? AND topic=?)\n" +
			"SEARCH w USING PRIMARY KEY (chat_jid=? AND topic=?) LEFT-JOIN"},
		"queryQueuedBefore": {queryQueuedBefore, "SCAN turns USING COVERING INDEX turns_queued"},
		// The turns that agents work on, then the oldest ones of a chat, up to a limit.
		"queryCountOpen": {queryCountOpen, "CO-ROUTINE r\n" +
			"SCAN t USING INDEX turns_run\n" +
			"SCAN r\n" +
			"SCALAR SUBQUERY 2\n" +
			"CO-ROUTINE o\n" +
			"SEARCH t USING INDEX turns_open (chat_jid=?)\n" +
			"SCAN o\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH t USING INDEX turns_open (chat_jid=?)"},
		// All of a partial index: as many as agents work on.
		"queryWebWorking": {queryWebWorking, "SCAN t USING INDEX turns_run\n" +
			"USE TEMP B-TREE FOR DISTINCT"},
		// All of a covering index: rows are read of those alone that wait for a time.
		"queryWebWaits": {queryWebWaits, "SCAN t USING INDEX turns_queued\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryChatWork": {queryChatWork, "SCAN t USING INDEX turns_run\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryWebWork": {queryWebWork, "SCAN t USING INDEX turns_run\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
	})
}
