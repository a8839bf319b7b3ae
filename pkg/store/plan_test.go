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
	// of at most 10,000 index entries, and as far as the limit asks
	observed = "CO-ROUTINE o\n" +
		"SEARCH messages USING COVERING INDEX messages_routed (routed_to=? AND decision_seq>? AND decision_seq<?)\n" +
		"SCAN o\n" + messageRow + "\nCORRELATED SCALAR SUBQUERY 2\nSEARCH c USING PRIMARY KEY (jid=?)"
	original = "CORRELATED SCALAR SUBQUERY 1\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?)"
	topics   = "CO-ROUTINE topics\nSETUP\nSEARCH messages USING INDEX messages_web (chat_jid=?)\n" +
		"RECURSIVE STEP\nSCAN topics\nCORRELATED SCALAR SUBQUERY 2\nSEARCH messages USING INDEX messages_web (chat_jid=? AND topic>?)\n" +
		"SCAN topics\n" + messageRow + "\nCORRELATED SCALAR SUBQUERY 4\nSEARCH messages USING INDEX messages_web (chat_jid=? AND topic=?)"
)

// queryPlans has the expected plan of every statement in queries.go. A comment
// says why one may have SCAN or TEMP B-TREE.
func queryPlans() map[string][2]string {
	return map[string][2]string{
		"upsertProgress":    {upsertProgress, turnRow},
		"updateEndProgress": {updateEndProgress, progressRow},
		"queryProgress":     {queryProgress, progressRow},
		"updateUsage":       {updateUsage, turnRow},
		"queryUsage":        {queryUsage, turnRow},
		"queryMessage":      {queryMessage, messageRow},
		"queryByPlatformID": {queryByPlatformID, "SEARCH m USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"queryByPart":       {queryByPart, "SEARCH d USING COVERING INDEX deliveries_platform_id (platform_id=?)\n" + messageRow},
		"queryMessageID":    {queryMessageID, "SEARCH messages USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"queryLastID":       {queryLastID, "SEARCH messages"},
		"queryNewMessages":  {queryNewMessages, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryUndecidedChats": {queryUndecidedChats, "CO-ROUTINE waiting\nSETUP\nSEARCH messages USING INDEX messages_undecided\n" +
			"RECURSIVE STEP\nSCAN waiting\nCORRELATED SCALAR SUBQUERY 2\nSEARCH messages USING INDEX messages_undecided (chat_jid>?)\n" +
			"SCAN waiting"}, // one row per chat
		"queryUndecided":     {queryUndecided, "SEARCH m USING INDEX messages_undecided (chat_jid=? AND id>?)\n" + movedIn + "SEARCH o EXISTS USING INDEX messages_undecided (chat_jid=?)"},
		"queryTurnMessages":  {queryTurnMessages, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryTurnReplies":   {queryTurnReplies, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryGroupRows":     {queryGroupRows, "SEARCH m USING INDEX messages_groups (chat_jid=? AND group_key=?)"},
		"queryDerivedFrom":   {queryDerivedFrom, "SEARCH m USING INDEX messages_derived (derived_from=?)"},
		"queryObserved":      {queryObserved, observed},
		"queryObservedCount": {queryObservedCount, observed},
		"queryLastStaleAt":   {queryLastStaleAt, "SEARCH messages USING INDEX messages_stale (chat_jid=?)"},
		"queryBotTurns": {queryBotTurns, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"USE TEMP B-TREE FOR count(DISTINCT)\nSCAN n"},
		"queryRecentTurns":   {queryRecentTurns, "SEARCH m USING INDEX messages_routed (routed_to=?)"},
		"queryLastRateLimit": {queryLastRateLimit, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSEARCH n"},
		"queryCommandsOf":    {queryCommandsOf, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		"queryFoldersOfSender": {queryFoldersOfSender, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"SCAN n\nUSE TEMP B-TREE FOR DISTINCT"}, // a group or two
		"queryFiredEdit":  {queryFiredEdit, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryDeleted":    {queryDeleted, exists + "SEARCH messages USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)"},
		"queryLatestEdit": {queryLatestEdit, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"insertMessage":   {insertMessage, noRead},
		"updateEndQuoted": {updateEndQuoted, "SEARCH messages USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"updateEndQuotedOfOwn": {updateEndQuotedOfOwn, "SEARCH messages USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\n" +
			"SCALAR SUBQUERY 1\nSEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateDecide":     {updateDecide, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateContent":    {updateContent, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateOtherFiles": {updateOtherFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateAttachNotes": {updateAttachNotes, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\nLIST SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_notes (chat_jid=? AND routed_to=? AND thread_id=?)"},
		"queryNote":           {queryNote, "SEARCH messages USING INDEX messages_notes (chat_jid=? AND routed_to=? AND thread_id=?)"},
		"updateReleaseNotes":  {updateReleaseNotes, "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateTurnNotes":     {updateTurnNotes, "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateTurnContent":   {updateTurnContent, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateWithdraw":      {updateWithdraw, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateUndecide":      {updateUndecide, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateOldNotes":      {updateOldNotes, "SEARCH messages USING INDEX messages_note_targets (chat_jid=? AND target_id=?)"},
		"updateCancelReplies": {updateCancelReplies, "SEARCH messages USING INDEX messages_turn (turn_id=?)"},

		// All waiting rows of one platform.
		"queryOutboxLanes": {queryOutboxLanes, "CO-ROUTINE head\nSETUP\nSCAN CONSTANT ROW\nSCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_outbox (platform=?)\nRECURSIVE STEP\nSCAN head\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH n USING INDEX messages_outbox (platform=? AND (chat_jid,thread_id)>(?,?))\n" +
			"SCAN head\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)"}, // one row per lane
		"queryOldOutbound": {queryOldOutbound, "SEARCH m USING INDEX messages_outbox (platform=?)\nUSE TEMP B-TREE FOR DISTINCT"},
		"queryNewOutbound": {queryNewOutbound, "SEARCH m USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)\nUSE TEMP B-TREE FOR DISTINCT"},
		"queryNextOutbound": {queryNextOutbound, "SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)\n" + movedIn +
			"SEARCH o EXISTS USING INDEX messages_outbox (platform=? AND chat_jid=?)"},
		// Those of one lane: decorations are few.
		"queryNextDecoration": {queryNextDecoration, "SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)\n" + movedIn +
			"SEARCH o EXISTS USING INDEX messages_outbox (platform=? AND chat_jid=?)\nCORRELATED SCALAR SUBQUERY 4\nSEARCH t USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"querySuperseded": {querySuperseded, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=? AND id>?)"},
		// Few agents run at once, so a temporary table of their threads is small.
		"queryActiveLanes": {queryActiveLanes, "SCAN turns USING INDEX turns_run\nUSE TEMP B-TREE FOR DISTINCT"},
		"queryActiveTriggers": {queryActiveTriggers, "SCAN t USING INDEX turns_run\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWantedFiles":    {queryWantedFiles, "SEARCH m USING INDEX messages_wanted (platform=?)"},
		"updateWantFiles":     {updateWantFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateFiles":         {updateFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryDeliveries":     {queryDeliveries, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"updateClaimOutbound": {updateClaimOutbound, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateSettleOutbound": {updateSettleOutbound, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSCAN CONSTANT ROW\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"putDelivery":         {putDelivery, noRead},
		"queryWebBefore":      {queryWebBefore, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id<?)\n" + original},
		"queryWebTopicBefore": {queryWebTopicBefore, "SEARCH m USING INDEX messages_web (chat_jid=? AND topic=? AND id<?)\n" + original},
		"queryWebAfter":       {queryWebAfter, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>?)\n" + original},
		"queryChangesOfRow":   {queryChangesOfRow, "SEARCH m USING INDEX messages_derived (derived_from=?)"},
		"queryChangesOfPost":  {queryChangesOfPost, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryWebEnd": {queryWebEnd, "SCAN CONSTANT ROW\n" + subquery +
			"SEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=?)\nSCALAR SUBQUERY 2\nSEARCH messages"},
		"queryNewRows": {queryNewRows, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		// Of one platform, in the order of the index: as many as are being delivered.
		"queryWebUndelivered": {queryWebUndelivered, "SEARCH messages USING INDEX messages_outbox (platform=?)"},
		// One step per topic, not per row.
		"queryWebTopics": {queryWebTopics, topics},
		"queryDeliveryChanges": {queryDeliveryChanges, "SEARCH d USING INDEX deliveries_seq (seq>?)\n" + messageRow + "\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"SEARCH q USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH f USING PRIMARY KEY (chat_jid=? AND topic=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH n USING INDEX forks_own_thread (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY\n" + // a few of a thread
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH r USING INDEX messages_turn (turn_id=?)"},
		"queryClaimTurns": {queryClaimTurns, "COMPOUND QUERY\nLEFT-MOST SUBQUERY\nCO-ROUTINE n\n" +
			"SEARCH turns USING COVERING INDEX turns_claims (chat_jid=? AND place=?)\nSCAN n\nUNION ALL\n" +
			"CO-ROUTINE o\nSEARCH turns USING INDEX turns_open_claims (chat_jid=? AND place=?)\nSCAN o"},
		"queryClaim": {queryClaim, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH q USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH r USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH r USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\nSEARCH m USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\nSEARCH m USING INDEX messages_turn (turn_id=?)\nSEARCH d USING PRIMARY KEY (message_id=?)"},
		"queryDeliveriesRead": {queryDeliveriesRead, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH cursors USING PRIMARY KEY (daemon=? AND key=?)\n" +
			"SCALAR SUBQUERY 2\nSEARCH counters USING PRIMARY KEY (name=?)"},
		"queryEngagement": {queryEngagement, "CO-ROUTINE one\nSCAN CONSTANT ROW\nSCAN one\n" +
			"SEARCH chat_reply_state USING PRIMARY KEY (jid=? AND topic=?) LEFT-JOIN\nSCALAR SUBQUERY 1\n" +
			"SEARCH chats USING PRIMARY KEY (jid=?)\nSCALAR SUBQUERY 2\nSEARCH cursors USING PRIMARY KEY (daemon=? AND key=?)\nSCALAR SUBQUERY 3\nSEARCH counters USING PRIMARY KEY (name=?)"},
		// One chat's places, for a request that asks for all of them.
		"queryEngagements":    {queryEngagements, "SEARCH chat_reply_state USING PRIMARY KEY (jid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryRoutingVersion": {queryRoutingVersion, "SEARCH counters USING PRIMARY KEY (name=?)"},
		// All of a partial index, once per status request.
		"queryWaitingIn":        {queryWaitingIn, "CO-ROUTINE w\nSCAN messages USING INDEX messages_undecided\nSCAN w\nSEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWaitingBefore":    {queryWaitingBefore, "CO-ROUTINE w\nSEARCH messages USING INDEX messages_undecided (chat_jid=?)\nSCAN w\nSEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWaitingOutBefore": {queryWaitingOutBefore, "CO-ROUTINE w\nSEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=?)\nSCAN w\nSEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryWaitingOut":       {queryWaitingOut, "CO-ROUTINE w\nSCAN messages USING INDEX messages_outbox\nSCAN w\nSEARCH f USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryQueuedBefore":     {queryQueuedBefore, "SCAN turns USING COVERING INDEX turns_queued"},

		"queryChat":        {queryChat, "SEARCH chats USING PRIMARY KEY (jid=?)"},
		"queryThreadTopic": {queryThreadTopic, "SEARCH topic_threads USING PRIMARY KEY (chat_jid=? AND thread_id=?)"},
		"insertChat":       {insertChat, noRead},
		"queryState":       {queryState, "SEARCH router_state USING PRIMARY KEY (key=?)"},
		"putState":         {putState, noRead},
		"addState":         {addState, noRead},
		"bumpState":        {bumpState, noRead},
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
	maps.Copy(all, previewPlans())
	maps.Copy(all, transcriptPlans())
	return all
}
