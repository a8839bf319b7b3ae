package store

// retentionPlans has the expected plan of every statement in queries_retention.go.
func retentionPlans() map[string][2]string {
	return map[string][2]string{
		"queryTurnsPage":    {queryTurnsPage, "SEARCH turns USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryMessagesPage": {queryMessagesPage, "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryRunsPage":     {queryRunsPage, "SEARCH runs USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryTurnIsOld": {queryTurnIsOld, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 6\nSEARCH t USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 1\n" +
			"SEARCH c USING COVERING INDEX turns_root (root_turn_id=?)\nSCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\nSCALAR SUBQUERY 3\n" +
			"SEARCH s USING COVERING INDEX system_messages_turn (turn_id=?)\nSCALAR SUBQUERY 4\n" +
			"SEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nSCALAR SUBQUERY 5\nSCAN f USING INDEX messages_returning"},
		"deleteToolCalls":    {deleteToolCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)"},
		"deleteTurnProgress": {deleteTurnProgress, "SEARCH turn_progress USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteTranscripts":  {deleteTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"deletePreviews":     {deletePreviews, "SEARCH previews USING INDEX previews_turn (turn_id=?)"},
		"deleteAsks":         {deleteAsks, "SEARCH asks USING INDEX sqlite_autoindex_asks_1 (turn_id=?)"},
		"deleteTurn":         {deleteTurn, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMessageIsOld": {queryMessageIsOld, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 9\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 2\n" +
			"SEARCH t USING COVERING INDEX turns_trigger (trigger_message_id=?)\nSCALAR SUBQUERY 3\n" +
			"SEARCH c USING COVERING INDEX messages_derived (derived_from=?)\nSCALAR SUBQUERY 5\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)\nSCALAR SUBQUERY 6\nSEARCH p USING INDEX polls_message (message_id=?)\n" +
			"SCALAR SUBQUERY 7\nSEARCH a USING COVERING INDEX asks_message (message_id=?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\nCORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH e USING INDEX messages_target (chat_jid=? AND target_id=?)\nCORRELATED SCALAR SUBQUERY 8\n" +
			"SEARCH r USING PRIMARY KEY (jid=?)"},
		"deleteForks":      {deleteForks, "SEARCH forks USING INDEX forks_message (message_id=?)"},
		"deleteDeliveries": {deleteDeliveries, "SEARCH deliveries USING PRIMARY KEY (message_id=?)"},
		"deletePollVotes": {deletePollVotes, "SEARCH poll_votes USING PRIMARY KEY (poll_id=?)\nLIST SUBQUERY 1\n" +
			"SEARCH polls USING COVERING INDEX polls_message (message_id=?)"},
		"deletePollRefs": {deletePollRefs, "SEARCH poll_refs USING COVERING INDEX poll_refs_message (message_id=?)"},
		"deletePolls":    {deletePolls, "SEARCH polls USING INDEX polls_message (message_id=?)"},
		"deleteSlots": {deleteSlots, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)\nCORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH l USING PRIMARY KEY (reminder_id=?)"},
		"updateLastSlot": {updateLastSlot, "SEARCH reminder_slots USING COVERING INDEX reminder_slots_message (message_id=?)"},
		"deleteMessage":  {deleteMessage, "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunIsOld": {queryRunIsOld, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 2\nSEARCH r USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 1\n" +
			"SEARCH t USING COVERING INDEX turns_of_run (run_id=?)"},
		"deleteRunLog":        {deleteRunLog, "SEARCH session_log USING INDEX sqlite_autoindex_session_log_1 (run_id=?)"},
		"deleteRun":           {deleteRun, "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryBroadcastsPage": {queryBroadcastsPage, "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid>?)"},
		"queryBroadcastIsOld": {queryBroadcastIsOld, exists + "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteBroadcast":     {deleteBroadcast, "SEARCH broadcasts USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunExists":      {queryRunExists, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryNeededFiles": {queryNeededFiles, "COMPOUND QUERY\nLEFT-MOST SUBQUERY\nSCAN t USING INDEX turns_open\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\nUNION ALL\nSCAN m USING INDEX messages_outbox"},
		"queryAttachments": {queryAttachments, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)"},
	}
}
