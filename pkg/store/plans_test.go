package store

// Steps of query plans. subquery is the first line of a subquery, exists the one that SELECT EXISTS adds. The lines below
// them are how the rows are found.
const (
	subquery     = "SCALAR SUBQUERY 1\n"
	exists       = "SCAN CONSTANT ROW\n" + subquery
	noRead       = "" // an insert looks nothing up but its keys
	messageRow   = "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"
	turnRow      = "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"
	progressRow  = "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)"
	sessionRow   = "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)"
	ofChat       = "SEARCH context_objects USING PRIMARY KEY (chat_id=?)"
	counted      = "CO-ROUTINE b\nCO-ROUTINE w\n"
	oldest       = "\nSCAN w\nSCAN b\nCORRELATED SCALAR SUBQUERY 1\nSEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"
	aliasRow     = "SEARCH chat_aliases USING PRIMARY KEY (old_jid=?)"
	movedTwice   = "CORRELATED SCALAR SUBQUERY 1\nSEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"
	requestTitle = "\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN" // where a request finds its chat's title
	sorted       = "\nUSE TEMP B-TREE FOR GROUP BY\nUSE TEMP B-TREE FOR ORDER BY"
	chatOfRow    = "\nSEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"
)

// AllPlans are the statements, each with the query plan that SQLite should choose. A comment says why one may have SCAN or
// TEMP B-TREE.
func AllPlans() map[string][2]string {
	return map[string][2]string{
		"queryProgress":     {queryProgress, progressRow},
		"queryUsage":        {queryUsage, turnRow},
		"queryMessage":      {queryMessage, messageRow},
		"queryByPlatformID": {queryByPlatformID, "SEARCH m USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"queryByPart":       {queryByPart, "SEARCH d USING COVERING INDEX deliveries_platform_id (platform_id=?)\n" + messageRow},
		"queryMessageID":    {queryMessageID, "SEARCH messages USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"queryLastID":       {queryLastID, "SEARCH messages"},
		"queryTurnMessages": {queryTurnMessages, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryTurnReplies":  {queryTurnReplies, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryDerivedFrom":  {queryDerivedFrom, "SEARCH m USING INDEX messages_derived (derived_from=?)"},
		"insertMessage":     {insertMessage, noRead},
		"updateEndQuoted":   {updateEndQuoted, "SEARCH messages USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)"},
		"updateEndQuotedOfOwn": {updateEndQuotedOfOwn, "SEARCH messages USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\n" +
			"SCALAR SUBQUERY 1\nSEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateDecide":        {updateDecide, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateOtherFiles":    {updateOtherFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
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
		"queryChat":           {queryChat, "SEARCH chats USING PRIMARY KEY (jid=?)"},
		"queryThreadTopic":    {queryThreadTopic, "SEARCH topic_threads USING PRIMARY KEY (chat_jid=? AND thread_id=?)"},
		"insertChat":          {insertChat, noRead},
		"queryState":          {queryState, "SEARCH router_state USING PRIMARY KEY (key=?)"},
		"bumpState":           {BumpState, noRead},
		"queryAsk":            {queryAsk, "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryAskByMessage":   {queryAskByMessage, "SEARCH a USING INDEX asks_message (message_id=?)"},
		// At most fifty for a turn; open ones are few.
		"queryTurnAsks": {QueryTurnAsks, "SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryChatAsks": {queryChatAsks, "SCAN a USING INDEX asks_open\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		// A chat has few objects.
		"deleteEndedOfChat":    {deleteEndedOfChat, ofChat},
		"deleteUnmovedContext": {deleteUnmovedContext, ofChat},
		// From the newest on, as far as the limit asks.
		"queryAudit":        {queryAudit, "SEARCH audit USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryAuditWho":     {queryAuditWho, "SEARCH audit USING INDEX audit_who (who=? AND rowid<?)"},
		"queryAuditWhat":    {queryAuditWhat, "SEARCH audit USING INDEX audit_what (what=? AND rowid<?)"},
		"queryOldestAudit":  {queryOldestAudit, "SCAN audit"},
		"queryFork":         {queryFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		"queryForksInside":  {queryForksInside, "SEARCH forks USING INDEX forks_open (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY"}, // a few of a place
		"queryForkOfThread": {queryForkOfThread, "SEARCH n USING INDEX forks_own_thread (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"endFork":           {endFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		// A partial index is read to its end or to the limit, no row but the oldest is.
		"queryUndecidedBacklog": {queryUndecidedBacklog, counted + "SCAN messages USING INDEX messages_undecided" + oldest},
		"queryParkedBacklog":    {queryParkedBacklog, counted + "SCAN messages USING COVERING INDEX messages_parked" + oldest},
		"queryOutboxBacklog":    {queryOutboxBacklog, counted + "SEARCH messages USING INDEX messages_outbox (platform=?)" + oldest},
		"queryFilesBacklog":     {queryFilesBacklog, counted + "SEARCH messages USING INDEX messages_wanted (platform=?)" + oldest},
		"queryRunningBacklog":   {queryRunningBacklog, "SCAN turns USING INDEX turns_run"},
		// All of chat_aliases is read at most once per wake-up: few chats are ever moved.
		"queryAlias":    {queryAlias, aliasRow},
		"queryAnyAlias": {queryAnyAlias, exists + "SCAN chat_aliases"}, // as far as the first row
		"queryMovingTo": {queryMovingTo, "SEARCH chat_aliases USING COVERING INDEX chat_aliases_moving (new_jid=?)"},
		"putAlias":      {putAlias, noRead},
		"deleteAlias":   {deleteAlias, aliasRow},
		"updateMoving":  {updateMoving, aliasRow},
		"queryAliases":  {queryAliases, "SCAN chat_aliases"},
		"queryUnmoved": {queryUnmoved, "SCAN a\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH messages USING COVERING INDEX messages_chat (chat_jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH turns USING COVERING INDEX turns_chat (chat_jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\nSEARCH chats USING PRIMARY KEY (jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\nSEARCH chat_reply_state USING PRIMARY KEY (jid=?)"},
		"queryUndecidedIDs":    {queryUndecidedIDs, "SEARCH messages USING INDEX messages_undecided (chat_jid=?)"},
		"queryUnsettledIDs":    {queryUnsettledIDs, "SEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=?)"},
		"queryMessageIDs":      {queryMessageIDs, "SEARCH messages USING COVERING INDEX messages_chat (chat_jid=?)"},
		"queryOpenTurnIDs":     {queryOpenTurnIDs, "SEARCH turns USING INDEX turns_open (chat_jid=?)"},
		"queryTurnIDs":         {queryTurnIDs, "SEARCH turns USING COVERING INDEX turns_chat (chat_jid=?)"},
		"queryMovedBefore":     {queryMovedBefore, messageRow + "\n" + movedTwice},
		"updateMoveMessage":    {updateMoveMessage, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\n" + movedTwice},
		"updateMoveDeliveries": {updateMoveDeliveries, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"updateMoveTurn":       {updateMoveTurn, turnRow},
		"updateMovePreviews":   {updateMovePreviews, "SEARCH previews USING INDEX previews_turn (turn_id=?)"},
		"updateMoveRuns":       {updateMoveRuns, "SCAN runs USING INDEX runs_unended"}, // the whole of a small partial index
		"queryPendingRequest":  {queryPendingRequest, "SEARCH r USING INDEX onboarding_pending (chat_jid=?)" + requestTitle},
		"queryLastDecided":     {queryLastDecided, "SEARCH r USING INDEX onboarding_chat (chat_jid=?)" + requestTitle},
		// As far as the limit asks.
		"queryRequests": {queryRequests, "SCAN r USING INDEX onboarding_created" + requestTitle},
		// Once for each operator of a new request, of which there are few within an hour.
		"queryDirectChat": {queryDirectChat, "SCAN c\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH i USING INDEX messages_chat (chat_jid=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		// As far as the chat's last inbound message.
		"queryLastVerb": {queryLastVerb, "SEARCH messages USING INDEX messages_chat (chat_jid=?)"},
		"updateMergeRequests": {updateMergeRequests, "SEARCH onboarding_requests USING INDEX onboarding_pending (chat_jid=?)\nSCALAR SUBQUERY 1\n" +
			"SEARCH o USING INDEX onboarding_pending (chat_jid=?)\nSEARCH n USING INDEX onboarding_pending (chat_jid=?)"},
		"insertAudit":         {insertAudit, noRead},
		"queryParkedIDs":      {QueryParkedIDs, "SEARCH messages USING COVERING INDEX messages_parked (chat_jid=?)"},
		"queryPollByMessage":  {queryPollByMessage, "SEARCH p USING INDEX polls_message (message_id=?)"},
		"queryVoteRows":       {queryVoteRows, "SEARCH messages USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryPollVotes":      {queryPollVotes, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)"},
		"queryPollCounts":     {queryPollCounts, "SEARCH v USING PRIMARY KEY (poll_id=?)\nSCAN o VIRTUAL TABLE INDEX 1:\nUSE TEMP B-TREE FOR GROUP BY"},
		"queryPollVoterCount": {queryPollVoterCount, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)"},
		// Processes are a few dozen.
		"queryProcess":  {queryProcess, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateRenewed": {updateRenewed, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		// The newest change of a row.
		"queryChange": {queryChange, messageRow + "\nSEARCH e USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"queryReminder":        {queryReminder, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryFolderReminders": {queryFolderReminders, "SEARCH r USING INDEX reminders_folder (folder=? AND state=? AND id>?)"},
		"queryChatReminders":   {queryChatReminders, "SEARCH r USING INDEX reminders_chat (chat_jid=? AND state=? AND id>?)"},
		"queryActiveReminders": {queryActiveReminders, "SEARCH r USING INDEX reminders_active (id>?)"},
		"queryDueReminders":    {queryDueReminders, "SEARCH r USING INDEX reminders_due (next_slot<?)"},
		"queryLastSlot":        {queryLastSlot, "SEARCH reminder_slots USING PRIMARY KEY (reminder_id=?)"},
		"queryReminderOf":      {queryReminderOf, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)"},
		"queryNeededFiles": {queryNeededFiles, "COMPOUND QUERY\nLEFT-MOST SUBQUERY\nSCAN t USING INDEX turns_open\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\nUNION ALL\nSCAN m USING INDEX messages_outbox"},
		"queryAttachments": {queryAttachments, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)"},
		// A table of one row.
		"querySearchState":   {QuerySearchState, "SCAN search_state"},
		"querySearchNext":    {querySearchNext, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"updateSearchState":  {updateSearchState, "SCAN search_state"},
		"insertSearchRows":   {insertSearchRows, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		"querySearchDeleted": {QuerySearchDeleted, "CO-ROUTINE d\nSCAN search_deleted\nSCAN d"},
		"deleteSearchRows":   {deleteSearchRows, "SCAN message_search VIRTUAL TABLE INDEX 1:\nLIST SUBQUERY 1\nSEARCH search_deleted USING INTEGER PRIMARY KEY (rowid<?)"},
		"deleteSearchTexts":  {deleteSearchTexts, "SEARCH search_deleted USING INTEGER PRIMARY KEY (rowid<?)"},
		"querySearchHits":    {QuerySearchHits, "SCAN message_search VIRTUAL TABLE INDEX 393219:DESC"},
		"queryListed":        {QueryListed, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\nSEARCH d USING COVERING INDEX deliveries_failed (error_class=? AND message_id=?)"},
		"queryListedFound":   {QueryListedFound, "SCAN j VIRTUAL TABLE INDEX 1:\nSEARCH h USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 1\nSEARCH o USING COVERING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\nCORRELATED SCALAR SUBQUERY 2\nSEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY 3\nSEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY 4\nSEARCH d USING COVERING INDEX deliveries_failed (error_class=? AND message_id=?)"},
		"queryCopyOf":        {queryCopyOf, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nSEARCH n USING INDEX messages_derived (derived_from=?)"},
		// Lists read a row for each day, group and chat in which something was used, of the days that they are about, and sort
		// their sums.
		"upsertMovedSpend":      {upsertMovedSpend, "SEARCH spend USING INDEX spend_chat (chat_jid=?)"},
		"deleteChatSpend":       {deleteChatSpend, "SEARCH spend USING INDEX spend_chat (chat_jid=?)"},
		"querySpendDays":        {querySpendDays, "SEARCH spend USING PRIMARY KEY (day>? AND day<?)"},
		"queryFolderSpendDays":  {queryFolderSpendDays, "SEARCH spend USING INDEX spend_folder (folder=? AND day>? AND day<?)"},
		"querySpendGroups":      {querySpendGroups, "SEARCH spend USING PRIMARY KEY (day>? AND day<?)" + sorted},
		"querySpendChats":       {querySpendChats, "SEARCH spend USING PRIMARY KEY (day>? AND day<?)" + sorted},
		"queryFolderSpendChats": {queryFolderSpendChats, "SEARCH spend USING INDEX spend_folder (folder=? AND day>? AND day<?)" + sorted},
		"queryToolCalls":        {queryToolCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryChatFileBytes":    {queryChatFileBytes, "SEARCH m USING INDEX messages_files (chat_jid=? AND received_at>?)\nSCAN a VIRTUAL TABLE INDEX 1:"},
		"queryTranscripts":      {queryTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"deleteTranscriptsOf":   {deleteTranscriptsOf, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"queryTurn":             {queryTurn, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		// Once at start, over a partial index of open turns.
		"queryOpenTurns": {queryOpenTurns, "SCAN t USING INDEX turns_open\nUSE TEMP B-TREE FOR ORDER BY"},
		// A list for operators, newest first: it stops when the page is full.
		"queryTurns":       {queryTurns, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryChatTurns":   {queryChatTurns, "SEARCH t USING INDEX turns_chat (chat_jid=? AND id<?)"},
		"queryFolderTurns": {queryFolderTurns, "SEARCH t USING INDEX turns_folder (folder=? AND id<?)"},
		// of at most 1,000 rows
		"queryLastHome":       {queryLastHome, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		"queryLastUser":       {queryLastUser, "CO-ROUTINE n\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN n"},
		"queryMark":           {QueryMark, "SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"updateCancelMark":    {updateCancelMark, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMarkOf":         {queryMarkOf, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryReacted":        {queryReacted, exists + "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid>?)"},
		"queryMarkable":       {queryMarkable, "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)" + chatOfRow},
		"queryMarkableOfTurn": {queryMarkableOfTurn, "SEARCH m USING INDEX messages_turn (turn_id=?)" + chatOfRow},
		// Of the rows that wait.
		"queryAsleep": {queryAsleep, "SEARCH m USING INDEX messages_undecided (chat_jid>? AND chat_jid<?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH k USING INDEX messages_target (chat_jid=? AND target_id=?)\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFoldedInto": {queryFoldedInto, "SEARCH t USING INDEX turns_answered_with (answered_with=?)"},
		// All of a partial index: one row per process.
		"queryUnended":     {queryUnended, "SCAN r USING INDEX runs_unended"},
		"querySession":     {querySession, sessionRow},
		"queryAgentModels": {queryAgentModels, "SEARCH agent_models USING PRIMARY KEY (folder=? AND agent=?)"},
		"insertSystem":     {insertSystem, noRead},
		// A list for operators.
		"queryOpenState":   {queryOpenState, "SCAN t USING INDEX turns_open\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryFailedState": {queryFailedState, "SEARCH t USING INDEX turns_state (state=? AND id<?)"},
		// At start.
		"queryFailing": {queryFailing, "SCAN group_failures"},
	}
}
