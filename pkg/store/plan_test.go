package store

import "maps"

// subquery is the first line of a subquery in a query plan, exists the one that
// SELECT EXISTS adds. The lines below them are how the rows are found.
const (
	subquery    = "SCALAR SUBQUERY 1\n"
	exists      = "SCAN CONSTANT ROW\n" + subquery
	noRead      = "" // an insert looks nothing up but its keys
	messageRow  = "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"
	turnRow     = "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"
	progressRow = "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)"
	runRow      = "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"
	logRow      = "SEARCH session_log USING INDEX sqlite_autoindex_session_log_1 (run_id=?)"
	sessionRow  = "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)"
	keptRow     = "SEARCH kept_sessions USING PRIMARY KEY (group_folder=? AND topic=? AND agent=?)"
)

// queryPlans has the expected plan of every statement in queries.go. A comment
// says why one may have SCAN or TEMP B-TREE.
func queryPlans() map[string][2]string {
	return map[string][2]string{
		"queryProgress": {queryProgress, progressRow},

		"queryUsage":        {queryUsage, turnRow},
		"queryMessage":      {queryMessage, messageRow},
		"queryByPlatformID": {queryByPlatformID, "SEARCH m USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"queryByPart":       {queryByPart, "SEARCH d USING COVERING INDEX deliveries_platform_id (platform_id=?)\n" + messageRow},
		"queryMessageID":    {queryMessageID, "SEARCH messages USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"queryLastID":       {queryLastID, "SEARCH messages"},

		"queryTurnMessages": {queryTurnMessages, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryTurnReplies":  {queryTurnReplies, "SEARCH m USING INDEX messages_turn (turn_id=?)"},

		"queryDerivedFrom": {queryDerivedFrom, "SEARCH m USING INDEX messages_derived (derived_from=?)"},

		"insertMessage":   {insertMessage, noRead},
		"updateEndQuoted": {updateEndQuoted, "SEARCH messages USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"updateEndQuotedOfOwn": {updateEndQuotedOfOwn, "SEARCH messages USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\n" +
			"SCALAR SUBQUERY 1\nSEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateDecide": {updateDecide, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},

		"updateOtherFiles": {updateOtherFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},

		"updateFiles":         {updateFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryDeliveries":     {queryDeliveries, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"updateClaimOutbound": {updateClaimOutbound, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateSettleOutbound": {updateSettleOutbound, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSCAN CONSTANT ROW\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"putDelivery": {putDelivery, noRead},

		"queryDeliveryChanges": {queryDeliveryChanges, "SEARCH d USING INDEX deliveries_seq (seq>?)\n" + messageRow + "\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"SEARCH q USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH f USING PRIMARY KEY (chat_jid=? AND topic=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH n USING INDEX forks_own_thread (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY\n" + // a few of a thread
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH r USING INDEX messages_turn (turn_id=?)"},

		"queryEngagement": {queryEngagement, "CO-ROUTINE one\nSCAN CONSTANT ROW\nSCAN one\n" +
			"SEARCH chat_reply_state USING PRIMARY KEY (jid=? AND topic=?) LEFT-JOIN\nSCALAR SUBQUERY 1\n" +
			"SEARCH chats USING PRIMARY KEY (jid=?)\nSCALAR SUBQUERY 2\nSEARCH cursors USING PRIMARY KEY (daemon=? AND key=?)\nSCALAR SUBQUERY 3\nSEARCH counters USING PRIMARY KEY (name=?)"},
		// One chat's places, for a request that asks for all of them.
		"queryEngagements":    {queryEngagements, "SEARCH chat_reply_state USING PRIMARY KEY (jid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryRoutingVersion": {queryRoutingVersion, "SEARCH counters USING PRIMARY KEY (name=?)"},

		"queryChat":        {queryChat, "SEARCH chats USING PRIMARY KEY (jid=?)"},
		"queryThreadTopic": {queryThreadTopic, "SEARCH topic_threads USING PRIMARY KEY (chat_jid=? AND thread_id=?)"},
		"insertChat":       {insertChat, noRead},
		"queryState":       {queryState, "SEARCH router_state USING PRIMARY KEY (key=?)"},

		"bumpState": {BumpState, noRead},
	}
}

// allPlans has the expected plans of the statements in all files.
func allPlans() map[string][2]string {
	all := queryPlans()
	maps.Copy(all, recentPlans())
	maps.Copy(all, movePlans())
	maps.Copy(all, spendPlans())
	maps.Copy(all, contextPlans())
	maps.Copy(all, turnPlans())
	maps.Copy(all, retentionPlans())
	maps.Copy(all, onboardingPlans())
	maps.Copy(all, examinePlans())
	maps.Copy(all, copyPlans())
	maps.Copy(all, parkedPlans())
	maps.Copy(all, pollPlans())
	maps.Copy(all, askPlans())
	maps.Copy(all, processPlans())
	maps.Copy(all, metricPlans())
	maps.Copy(all, toolPlans())
	maps.Copy(all, forkPlans())
	maps.Copy(all, reminderPlans())
	maps.Copy(all, searchPlans())
	maps.Copy(all, dashboardRoutePlans())
	maps.Copy(all, chatPlans())
	maps.Copy(all, transcriptPlans())
	return all
}
