package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	storetest.CheckPlans(t, map[string][2]string{
		"queryFolderOpenAsks": {queryFolderOpenAsks, "SCAN a USING INDEX asks_open\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryAsksDue": {queryAsksDue, "SCAN a USING INDEX asks_open\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryOpenAsks": {queryOpenAsks, "SCAN a USING INDEX asks_open\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"updateAskWho": {updateAskWho, "SEARCH asks USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunOpenAsks": {queryRunOpenAsks, "SEARCH t USING COVERING INDEX turns_run (run_id=?)\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)"},
		"querySaidSince": {querySaidSince, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)"},
		"insertAsk":       {insertAsk, ""},
		"updateAnswerAsk": {updateAnswerAsk, "SEARCH asks USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateExpireAsk": {updateExpireAsk, "SEARCH asks USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateCancelAsk": {updateCancelAsk, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"upsertAsking":    {upsertAsking, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateAsked": {updateAsked, "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)"},
		"queryIsForum": {queryIsForum, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH platform_threads USING PRIMARY KEY (chat_jid=?)"},
		"queryContextOfChat": {queryContextOfChat, "SEARCH context_objects USING PRIMARY KEY (chat_id=?)"},
		"queryContextObject": {queryContextObject, "SEARCH context_objects USING PRIMARY KEY (chat_id=? AND object_id=?)"},
		"queryContextOfSource": {queryContextOfSource, "SEARCH context_objects USING PRIMARY KEY (chat_id=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"deleteContextOfSource": {deleteContextOfSource, "SEARCH context_objects USING PRIMARY KEY (chat_id=?)"},
		"deleteContextExcess": {deleteContextExcess, "SEARCH context_objects USING PRIMARY KEY (chat_id=? AND object_id=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SEARCH context_objects USING PRIMARY KEY (chat_id=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"}, // a chat has about a hundred
		"putContextObject":    {putContextObject, ""},
		"deleteContextObject": {deleteContextObject, "SEARCH context_objects USING PRIMARY KEY (chat_id=? AND object_id=?)"},
		"deleteEndedContext": {deleteEndedContext, "SEARCH context_objects USING PRIMARY KEY (chat_id=? AND object_id=?)\n" +
			"LIST SUBQUERY 2\n" +
			"SEARCH context_objects USING COVERING INDEX context_objects_active (active_until<?)"},
		"queryChatHasTopics": {queryChatHasTopics, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH platform_threads USING PRIMARY KEY (chat_jid=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)\n" +
			"SCALAR SUBQUERY 4\n" +
			"CO-ROUTINE t\n" +
			"SEARCH turns USING INDEX turns_chat (chat_jid=?)\n" +
			"SCAN t"}, // 100 turns
		// one row
		"deleteOldAudit": {deleteOldAudit, "SEARCH audit USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SCAN audit\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH audit"}, // as many rows as the limit asks,
		"queryDecidedInbound": {queryDecidedInbound, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages"},
		"queryLostRows": {queryLostRows, "SEARCH m USING INDEX messages_lost (received_at>?)\n" +
			"SEARCH d USING PRIMARY KEY (message_id=? AND part=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 6\n" +
			"SEARCH f USING PRIMARY KEY (message_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH p USING PRIMARY KEY (message_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH p USING PRIMARY KEY (message_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH p USING PRIMARY KEY (message_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH n USING INDEX messages_derived (derived_from=?)\n" +
			"CORRELATED SCALAR SUBQUERY 5\n" +
			"SEARCH n USING INDEX messages_derived (derived_from=?)"},
		"queryOpenForks": {queryOpenForks, "SEARCH forks USING INDEX forks_open (chat_jid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryForkTaken": {queryForkTaken, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH forks USING INDEX forks_session (folder=? AND topic=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)\n" +
			"SCALAR SUBQUERY 5\n" +
			"SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)\n" +
			"SCALAR SUBQUERY 4\n" +
			"SEARCH forks USING COVERING INDEX forks_session (folder=? AND topic=?)"},
		"queryLastFork": {queryLastFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic>? AND topic<?)"},
		"insertFork":    {insertFork, ""},
		"queryLastAnswer": {queryLastAnswer, "CO-ROUTINE m\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"SCAN m\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryQueueBacklog": {queryQueueBacklog, "CO-ROUTINE q\n" +
			"CO-ROUTINE w\n" +
			"SCAN turns USING COVERING INDEX turns_queued\n" +
			"SCAN w\n" +
			"SCAN q\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"CO-ROUTINE f\n" +
			"SCAN turns USING COVERING INDEX turns_files\n" +
			"SCAN f\n" +
			"SCALAR SUBQUERY 5\n" +
			"CO-ROUTINE p\n" +
			"SCAN turns USING COVERING INDEX turns_probe\n" +
			"SCAN p"},
		"queryLiveRuns": {queryLiveRuns, "SCAN runs USING INDEX runs_unended\n" +
			"USE TEMP B-TREE FOR GROUP BY"},
		"queryMoving": {queryMoving, "SCAN chat_aliases USING COVERING INDEX chat_aliases_moving"},
		"queryParkedChats": {queryParkedChats, "CO-ROUTINE parked\n" +
			"SETUP\n" +
			"SEARCH messages USING COVERING INDEX messages_parked\n" +
			"RECURSIVE STEP\n" +
			"SCAN parked\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING COVERING INDEX messages_parked (chat_jid>?)\n" +
			"SCAN parked\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH onboarding_requests USING COVERING INDEX onboarding_pending (chat_jid=?)"},
		"queryParked":       {queryParked, "SEARCH m USING INDEX messages_parked (chat_jid=?)"},
		"updateTakeUp":      {updateTakeUp, "SEARCH messages USING INDEX messages_parked (chat_jid=?)"},
		"updateTakeUpRow":   {updateTakeUpRow, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateDropParked":  {updateDropParked, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryPollsInState": {queryPollsInState, "SEARCH p USING INDEX polls_list (chat_jid=? AND folder=? AND state=? AND id<?)"},
		"queryPollsDue":     {queryPollsDue, "SEARCH p USING INDEX polls_due (closes_at>? AND closes_at<?)"},
		"queryPollsEnding":  {queryPollsEnding, "SEARCH p USING INDEX polls_ending (id>?)"},
		"queryPollsUndelivered": {queryPollsUndelivered, "SEARCH p USING INDEX polls_open (id>?)\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryPollVoters": {queryPollVoters, "CO-ROUTINE p\n" +
			"CO-ROUTINE (subquery-3)\n" +
			"SEARCH v USING PRIMARY KEY (poll_id=?)\n" +
			"SCAN o VIRTUAL TABLE INDEX 1:\n" +
			"USE TEMP B-TREE FOR ORDER BY\n" +
			"SCAN (subquery-3)\n" +
			"SCAN p\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryVotesWaiting": {queryVotesWaiting, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_undecided (chat_jid=?)"},
		"insertPoll":      {insertPoll, ""},
		"updateClosePoll": {updateClosePoll, "SEARCH polls USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndedPoll": {updateEndedPoll, "SEARCH polls USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteExpired":   {deleteExpired, "SCAN processes"},
		"queryExpired":    {queryExpired, "SCAN processes"},
		"queryRunsOfGone": {queryRunsOfGone, "SCAN r USING INDEX runs_unended\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryFolderOwner": {queryFolderOwner, "SCAN r USING INDEX runs_unended"},
		"queryBusyRunsOf": {queryBusyRunsOf, "SCAN b USING INDEX runs_unended\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH t USING COVERING INDEX turns_run (run_id=?)\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\n" +
			"SEARCH t EXISTS USING COVERING INDEX turns_run (run_id=?)"},
		"queryRecent": {queryRecent, "CO-ROUTINE r\n" +
			"SEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id<?)\n" +
			"SCAN r\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"queryRecentThread": {queryRecentThread, "CO-ROUTINE r\n" +
			"SEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=? AND id<?)\n" +
			"SCAN r\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"queryRecentTopic": {queryRecentTopic, "CO-ROUTINE r\n" +
			"SEARCH messages USING INDEX messages_web (chat_jid=? AND topic=? AND id<?)\n" +
			"SCAN r\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"queryRecentOpening": {queryRecentOpening, "CO-ROUTINE r\n" +
			"SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCAN r\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"queryRecentParts": {queryRecentParts, "SCAN own VIRTUAL TABLE INDEX 1:\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)"},
		"queryNextSlot": {queryNextSlot, "SEARCH reminders USING COVERING INDEX reminders_due (next_slot>?)"},
		"queryCountReminders": {queryCountReminders, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH reminders USING COVERING INDEX reminders_folder (folder=? AND state=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH reminders USING COVERING INDEX reminders_chat (chat_jid=? AND state=?)"},
		"queryPlannedPrompts": {queryPlannedPrompts, "SEARCH reminders USING INDEX reminders_chat (chat_jid=? AND state=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"}, // 50 at most
		// 50 at most
		"queryNotifiedOfLimit": {queryNotifiedOfLimit, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 2\n" +
			"CO-ROUTINE n\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"SCAN n"},
		// When metrics are read.
		"queryCountActive": {queryCountActive, "SCAN reminders USING COVERING INDEX reminders_active"},
		"queryRefusedSlots": {queryRefusedSlots, "SEARCH s USING PRIMARY KEY (reminder_id=?)\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"MULTI-INDEX OR\n" +
			"INDEX 1\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"INDEX 2\n" +
			"SEARCH o USING INDEX messages_turn (turn_id=?)\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)"},
		"insertReminder":     {insertReminder, ""},
		"updateReminder":     {updateReminder, "SEARCH reminders USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndReminder":  {updateEndReminder, "SEARCH reminders USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateFireReminder": {updateFireReminder, "SEARCH reminders USING INTEGER PRIMARY KEY (rowid=?)"},
		"insertSlot":         {insertSlot, ""},
		"updateSlot":         {updateSlot, "SEARCH reminder_slots USING PRIMARY KEY (reminder_id=? AND slot=?)"},
		// the first of them
		"insertBroadcast":   {insertBroadcast, ""},
		"updateBroadcast":   {updateBroadcast, "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryChatsPage":    {queryChatsPage, "SEARCH chats USING PRIMARY KEY (jid>?)"},
		"queryTurnsPage":    {queryTurnsPage, "SEARCH turns USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryMessagesPage": {queryMessagesPage, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryRunsPage":     {queryRunsPage, "SEARCH runs USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryTurnIsOld": {queryTurnIsOld, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 6\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH c USING COVERING INDEX turns_root (root_turn_id=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH s USING COVERING INDEX system_messages_turn (turn_id=?)\n" +
			"SCALAR SUBQUERY 4\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\n" +
			"SCALAR SUBQUERY 5\n" +
			"SCAN f USING INDEX messages_returning"},
		"deleteToolCalls":    {deleteToolCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)"},
		"deleteTurnProgress": {deleteTurnProgress, "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteTranscripts":  {deleteTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"deletePreviews":     {deletePreviews, "SEARCH previews USING INDEX previews_turn (turn_id=?)"},
		"deleteAsks":         {deleteAsks, "SEARCH asks USING INDEX sqlite_autoindex_asks_1 (turn_id=?)"},
		"deleteTurn":         {deleteTurn, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMessageIsOld": {queryMessageIsOld, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 9\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH t USING COVERING INDEX turns_trigger (trigger_message_id=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH c USING COVERING INDEX messages_derived (derived_from=?)\n" +
			"SCALAR SUBQUERY 5\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)\n" +
			"SCALAR SUBQUERY 6\n" +
			"SEARCH p USING INDEX polls_message (message_id=?)\n" +
			"SCALAR SUBQUERY 7\n" +
			"SEARCH a USING COVERING INDEX asks_message (message_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH e USING INDEX messages_target (chat_jid=? AND target_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 8\n" +
			"SEARCH r USING PRIMARY KEY (jid=?)"},
		"deleteForks":      {deleteForks, "SEARCH forks USING INDEX forks_message (message_id=?)"},
		"deleteDeliveries": {deleteDeliveries, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"deletePollVotes": {deletePollVotes, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SEARCH polls USING COVERING INDEX polls_message (message_id=?)"},
		"deletePollRefs": {deletePollRefs, "SEARCH poll_refs USING COVERING INDEX poll_refs_message (message_id=?)"},
		"deletePolls":    {deletePolls, "SEARCH polls USING INDEX polls_message (message_id=?)"},
		"deleteSlots": {deleteSlots, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH l USING PRIMARY KEY (reminder_id=?)"},
		"updateLastSlot": {updateLastSlot, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)"},
		"deleteMessage":  {deleteMessage, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunIsOld": {queryRunIsOld, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH r USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH t USING COVERING INDEX turns_of_run (run_id=?)"},
		"deleteRunLog":        {deleteRunLog, "SEARCH session_log USING INDEX sqlite_autoindex_session_log_1 (run_id=?)"},
		"deleteRun":           {deleteRun, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryBroadcastsPage": {queryBroadcastsPage, "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryBroadcastIsOld": {queryBroadcastIsOld, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteBroadcast": {deleteBroadcast, "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunExists": {queryRunExists, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"upsertSpend":       {upsertSpend, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryOverBudget":   {queryOverBudget, "SEARCH t USING INDEX turns_state (state=?)"},
		"upsertProgress":    {upsertProgress, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndProgress": {updateEndProgress, "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateUsage":       {updateUsage, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryNewMessages":  {queryNewMessages, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryUndecidedChats": {queryUndecidedChats, "CO-ROUTINE waiting\n" +
			"SETUP\n" +
			"SEARCH messages USING INDEX messages_undecided\n" +
			"RECURSIVE STEP\n" +
			"SCAN waiting\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING INDEX messages_undecided (chat_jid>?)\n" +
			"SCAN waiting"}, // one row per chat
		// one row per chat
		"queryUndecided": {queryUndecided, "SEARCH m USING INDEX messages_undecided (chat_jid=? AND id>?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH chat_aliases USING PRIMARY KEY (old_jid=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH a USING COVERING INDEX chat_aliases_moving (new_jid=?)\n" +
			"SEARCH o EXISTS USING INDEX messages_undecided (chat_jid=?)"},
		"queryGroupRows": {queryGroupRows, "SEARCH m USING INDEX messages_groups (chat_jid=? AND group_key=?)"},
		"queryObserved": {queryObserved, "CO-ROUTINE o\n" +
			"SEARCH messages USING COVERING INDEX messages_routed (routed_to=? AND decision_seq>? AND decision_seq<?)\n" +
			"SCAN o\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING PRIMARY KEY (jid=?)"},
		"queryObservedCount": {queryObservedCount, "CO-ROUTINE o\n" +
			"SEARCH messages USING COVERING INDEX messages_routed (routed_to=? AND decision_seq>? AND decision_seq<?)\n" +
			"SCAN o\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING PRIMARY KEY (jid=?)"},
		"queryLastStaleAt": {queryLastStaleAt, "SEARCH messages USING INDEX messages_stale (chat_jid=?)"},
		"queryBotTurns": {queryBotTurns, "CO-ROUTINE n\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"USE TEMP B-TREE FOR count(DISTINCT)\n" +
			"SCAN n"},
		"queryRecentTurns": {queryRecentTurns, "SEARCH m USING INDEX messages_routed (routed_to=?)"},
		"queryLastRateLimit": {queryLastRateLimit, "CO-ROUTINE n\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"SEARCH n"},
		"queryCommandsOf": {queryCommandsOf, "CO-ROUTINE n\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"SCAN n"},
		"queryFoldersOfSender": {queryFoldersOfSender, "CO-ROUTINE n\n" +
			"SEARCH messages USING INDEX messages_chat (chat_jid=?)\n" +
			"SCAN n\n" +
			"USE TEMP B-TREE FOR DISTINCT"}, // a group or two
		// a group or two
		"queryFiredEdit": {queryFiredEdit, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"queryDeleted": {queryDeleted, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)"},
		"queryLatestEdit": {queryLatestEdit, "SEARCH m USING INDEX messages_target (chat_jid=? AND target_id=?)"},
		"updateContent":   {updateContent, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateAttachNotes": {updateAttachNotes, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_notes (chat_jid=? AND routed_to=? AND thread_id=?)"},
		"queryNote":           {queryNote, "SEARCH messages USING INDEX messages_notes (chat_jid=? AND routed_to=? AND thread_id=?)"},
		"updateReleaseNotes":  {updateReleaseNotes, "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateTurnNotes":     {updateTurnNotes, "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateTurnContent":   {updateTurnContent, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateWithdraw":      {updateWithdraw, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateUndecide":      {updateUndecide, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateOldNotes":      {updateOldNotes, "SEARCH messages USING INDEX messages_note_targets (chat_jid=? AND target_id=?)"},
		"updateCancelReplies": {updateCancelReplies, "SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateWantFiles":     {updateWantFiles, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"putState":            {putState, ""},
		"addState":            {addState, ""},
		"queryToolCall":       {queryToolCall, "SEARCH tool_calls USING PRIMARY KEY (turn_id=? AND call=?)"},
		// at most some hundred
		"queryToolCallCount": {queryToolCallCount, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)"},
		"queryGroupCalls": {queryGroupCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SEARCH turns USING INDEX turns_folder (folder=?)"},
		"queryCallsOfRoot": {queryCallsOfRoot, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\n" +
			"LIST SUBQUERY 2\n" +
			"COMPOUND QUERY\n" +
			"LEFT-MOST SUBQUERY\n" +
			"SEARCH turns USING COVERING INDEX turns_root (root_turn_id=?)\n" +
			"UNION ALL\n" +
			"SCAN CONSTANT ROW"},
		"insertToolCall":     {insertToolCall, ""},
		"queryThreadOfTopic": {queryThreadOfTopic, "SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)"}, // a few of a chat
		// a few of a chat
		"queryHasThread": {queryHasThread, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH platform_threads USING PRIMARY KEY (chat_jid=? AND thread_id=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=?)"},
		"querySearchChatPage":   {querySearchChatPage, "SEARCH messages USING INDEX messages_chat (chat_jid=? AND id<?)"},
		"querySearchRoutedPage": {querySearchRoutedPage, "SEARCH messages USING INDEX messages_routed (routed_to=? AND decision_seq<?)"},
		"querySearchChat": {querySearchChat, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SCAN json_each VIRTUAL TABLE INDEX 1:"},
		"querySearchRouted": {querySearchRouted, "SEARCH m USING INDEX messages_routed (routed_to=? AND decision_seq>? AND decision_seq<?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH c USING PRIMARY KEY (jid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SCAN json_each VIRTUAL TABLE INDEX 1:"},
		"queryBeforeMessage": {queryBeforeMessage, "CO-ROUTINE o\n" +
			"SEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id<?)\n" +
			"SCAN o\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"queryAfterMessage": {queryAfterMessage, "CO-ROUTINE o\n" +
			"SEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id>?)\n" +
			"SCAN o\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)"},
		"insertTranscript": {insertTranscript, ""},
		"queryWantedTranscripts": {queryWantedTranscripts, "SCAN x USING INDEX transcripts_wanted\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"updateTranscriptUntil":   {updateTranscriptUntil, "SEARCH transcripts USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateHeldTurn":          {updateHeldTurn, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteWantedTranscripts": {deleteWantedTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"updateTranscriptEnd":     {updateTranscriptEnd, "SEARCH transcripts USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunTurns":           {queryRunTurns, "SEARCH t USING INDEX turns_run (run_id=?)"},
		"queryLastAnswered":       {queryLastAnswered, "SEARCH turns USING INDEX turns_session (folder=? AND topic=? AND id<?)"},
		"queryLastTurnAt":         {queryLastTurnAt, "SEARCH turns USING INDEX turns_folder (folder=?)"},
		"queryWaits": {queryWaits, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING COVERING INDEX turns_run (run_id=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryDelegations": {queryDelegations, "SEARCH turns USING INDEX turns_root (root_turn_id=?)"},
		"insertTurn":       {insertTurn, ""},
		"updateRevive":     {updateRevive, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateFrame":      {updateFrame, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndTurn":    {updateEndTurn, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunIsLive": {queryRunIsLive, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"insertRun":       {insertRun, ""},
		"updateProcess":   {updateProcess, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateCloseRun":  {updateCloseRun, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndRun":    {updateEndRun, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateCloseLive": {updateCloseLive, "SEARCH runs USING INDEX runs_live (folder=? AND topic=?)"},
		// At gated's first start after an update, once in the life of an instance.
		"queryFoldersEver": {queryFoldersEver, "MERGE (UNION)\n" +
			"LEFT\n" +
			"MERGE (UNION)\n" +
			"LEFT\n" +
			"SCAN registered_groups\n" +
			"RIGHT\n" +
			"SCAN sessions\n" +
			"RIGHT\n" +
			"SCAN turns\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"putSession": {putSession, ""},
		"queryAgentSession": {queryAgentSession, "COMPOUND QUERY\n" +
			"LEFT-MOST SUBQUERY\n" +
			"SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)\n" +
			"UNION ALL\n" +
			"SEARCH kept_sessions USING PRIMARY KEY (group_folder=? AND topic=? AND agent=?)"},
		"putKeptSession":     {putKeptSession, "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)"},
		"deleteSession":      {deleteSession, "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)"},
		"deleteAgentSession": {deleteAgentSession, "SEARCH sessions USING PRIMARY KEY (group_folder=? AND topic=?)"},
		"deleteKeptSessions": {deleteKeptSessions, "SEARCH kept_sessions USING PRIMARY KEY (group_folder=? AND topic=?)"},
		"deleteAgentKept":    {deleteAgentKept, "SEARCH kept_sessions USING PRIMARY KEY (group_folder=? AND topic=? AND agent=?)"},
		"queryLastAgent":     {queryLastAgent, "SEARCH session_log USING INDEX session_log_topic (folder=? AND topic=?)"},
		"putAgentModels":     {putAgentModels, ""},
		"insertLog":          {insertLog, ""},
		"updateLog": {updateLog, "SEARCH session_log USING INDEX sqlite_autoindex_session_log_1 (run_id=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateEndLog":      {updateEndLog, "SEARCH session_log USING INDEX sqlite_autoindex_session_log_1 (run_id=?)"},
		"queryPastSessions": {queryPastSessions, "SEARCH session_log USING INDEX session_log_topic (folder=? AND topic=?)"},
		"queryPromptFacts": {queryPromptFacts, "CO-ROUTINE one\n" +
			"SCAN CONSTANT ROW\n" +
			"SCAN one\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH system_messages USING INDEX system_messages_folder (folder=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH system_messages USING COVERING INDEX system_messages_turn (turn_id=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH router_state USING PRIMARY KEY (key=?)\n" +
			"SCALAR SUBQUERY 4\n" +
			"SEARCH counters USING PRIMARY KEY (name=?)\n" +
			"SCALAR SUBQUERY 6\n" +
			"SEARCH m USING INDEX messages_chat (chat_jid=? AND id>?)\n" +
			"CORRELATED SCALAR SUBQUERY 5\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		"querySystemOfTurn": {querySystemOfTurn, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)"},
		"updateClaimSystem": {updateClaimSystem, "SEARCH system_messages USING INDEX system_messages_folder (folder=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateReleaseSystem": {updateReleaseSystem, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)"},
		"deleteSystem":        {deleteSystem, "SEARCH system_messages USING INDEX system_messages_turn (turn_id=?)"},
		"queryLastTurnID":     {queryLastTurnID, "SEARCH turns"},
		"updateJoin":          {updateJoin, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateTake":          {updateTake, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateRequeue":       {updateRequeue, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		// One step per lane with queued turns.
		"queryQueuedLanes": {queryQueuedLanes, "CO-ROUTINE lanes\n" +
			"SETUP\n" +
			"SEARCH turns USING INDEX turns_queued\n" +
			"RECURSIVE STEP\n" +
			"SCAN lanes\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH turns USING INDEX turns_queued (lane>?)\n" +
			"SCAN lanes\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH turns USING INDEX turns_queued (lane=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		// As far as the first turn that may start.
		"queryNextQueued": {queryNextQueued, "SEARCH t USING INDEX turns_queued (lane=? AND id>?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING INDEX turns_conversation (lane=? AND chat_jid=? AND topic=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SCAN s"},
		"queryNewestQueued": {queryNewestQueued, "SEARCH t USING INDEX turns_conversation (lane=? AND chat_jid=? AND topic=?)"},
		// One row per process.
		"queryBusyRuns": {queryBusyRuns, "SCAN b USING INDEX runs_unended\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH t USING COVERING INDEX turns_run (run_id=?)\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\n" +
			"SEARCH t EXISTS USING COVERING INDEX turns_run (run_id=?)"},
		// The plan of a process's turns.
		"queryRunFor": {queryRunFor, "SEARCH r USING INDEX runs_live (folder=? AND topic=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH w USING INDEX turns_queued (lane=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH group_failures USING PRIMARY KEY (folder=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH o USING COVERING INDEX turns_run (run_id=?)\n" +
			"SCALAR SUBQUERY 4\n" +
			"SCAN u USING INDEX runs_unended\n" +
			"SCALAR SUBQUERY 7\n" +
			"SCAN b USING INDEX runs_unended\n" +
			"CORRELATED SCALAR SUBQUERY 6\n" +
			"SEARCH t USING COVERING INDEX turns_run (run_id=?)\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\n" +
			"SEARCH t EXISTS USING COVERING INDEX turns_run (run_id=?)"},
		// Once a day.
		"queryOldRequests": {queryOldRequests, "SCAN s\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SCAN t USING INDEX turns_open"},
		"querySaid": {querySaid, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH turns USING INDEX turns_session (folder=? AND topic=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)"},
		"queryRunLoad": {queryRunLoad, "SEARCH turns USING INDEX turns_run (run_id=?)"},
		"queryRunTakes": {queryRunTakes, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		// All of a small partial index.
		"queryFilesReady": {queryFilesReady, "SCAN t USING INDEX turns_files\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH a USING INDEX messages_platform_id (chat_jid=? AND platform_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH x USING COVERING INDEX transcripts_wanted (turn_id=?)"},
		"updateWaitOver": {updateWaitOver, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		// At most sixteen turns per process.
		"queryRunningOfChat": {queryRunningOfChat, "SCAN t USING INDEX turns_run\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryQueuedOfChat":     {queryQueuedOfChat, "SEARCH t USING INDEX turns_open (chat_jid=? AND id>? AND id<?)"},
		"queryOpenBetween":      {queryOpenBetween, "SEARCH t USING INDEX turns_open (chat_jid>? AND chat_jid<?)"},
		"queryUndecidedBetween": {queryUndecidedBetween, "SEARCH m USING INDEX messages_undecided (chat_jid>? AND chat_jid<?)"},
		"queryStoppedRows":      {queryStoppedRows, "SEARCH m USING INDEX messages_undecided (chat_jid=? AND id>? AND id<?)"},
		// Empty, but for the seconds of a /stop.
		"queryStops": {queryStops, "SCAN s\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryStopsOfChat": {queryStopsOfChat, "SCAN s\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"insertStop":     {insertStop, ""},
		"updateStop":     {updateStop, "SEARCH stops USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteStop":     {deleteStop, "SEARCH stops USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryProbeAt":   {queryProbeAt, "SEARCH group_failures USING PRIMARY KEY (folder=?)"},
		"putFailures":    {putFailures, ""},
		"updateProbeAt":  {updateProbeAt, "SEARCH group_failures USING PRIMARY KEY (folder=?)"},
		"deleteFailures": {deleteFailures, "SEARCH group_failures USING PRIMARY KEY (folder=?)"},
		"updateProbed":   {updateProbed, "SEARCH turns USING COVERING INDEX turns_probe (folder=?)"},
		"queryAddressed": {queryAddressed, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryNotifiedOf": {queryNotifiedOf, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH turns USING INDEX turns_failed (chat_jid=? AND ended_at>?)"},
		"queryNoticedText": {queryNoticedText, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"queryNoticed": {queryNoticed, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_turn (turn_id=?)"},
		"updateDrain": {updateDrain, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateDrainIdle": {updateDrainIdle, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH turns USING COVERING INDEX turns_run (run_id=?)"},
		"queryPoll":           {queryPoll, "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryPollVote":       {queryPollVote, "SEARCH poll_votes USING PRIMARY KEY (poll_id=? AND voter=?)"},
		"putPollVote":         {putPollVote, ""},
		"deletePollVote":      {deletePollVote, "SEARCH poll_votes USING PRIMARY KEY (poll_id=? AND voter=?)"},
		"queryBroadcastByKey": {queryBroadcastByKey, "SEARCH broadcasts USING INDEX sqlite_autoindex_broadcasts_1 (key=?)"},
		"queryOpenBroadcast":  {queryOpenBroadcast, "SCAN broadcasts USING INDEX broadcasts_open"},
	})
}
