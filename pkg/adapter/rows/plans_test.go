package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	storetest.CheckPlans(t, map[string][2]string{
		"queryThreadUsed": {queryThreadUsed, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=?)"},
		"queryNotDelivered": {queryNotDelivered, "COMPOUND QUERY\n" +
			"LEFT-MOST SUBQUERY\n" +
			"SCAN chat_aliases\n" +
			"UNION ALL\n" +
			"SCAN a USING COVERING INDEX chat_aliases_moving\n" +
			"SEARCH o EXISTS USING INDEX messages_outbox (platform=? AND chat_jid=?)"},
		"queryPollsOpen": {queryPollsOpen, "SCAN p USING INDEX polls_open\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryPollRef": {queryPollRef, "SEARCH poll_refs USING PRIMARY KEY (daemon=? AND ref=?)"},
		"queryPollsSending": {queryPollsSending, "SEARCH m USING INDEX messages_outbox (platform=?)\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)"},
		"insertPollRef": {insertPollRef, ""},
		"queryWrittenBelow": {queryWrittenBelow, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_chat (chat_jid=? AND id>?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"insertPreview":       {insertPreview, ""},
		"updateKeepPreview":   {updateKeepPreview, "SEARCH previews USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndPreview":    {updateEndPreview, "SEARCH previews USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateEndingPreview": {updateEndingPreview, "SEARCH previews USING INTEGER PRIMARY KEY (rowid=?)"},
		"updateReopenPreview": {updateReopenPreview, "SEARCH previews USING INDEX previews_turn (turn_id=?)"},
		// all rows of the chat's threads, once for each reading of its history; as many entries to order as it has threads
		"queryRecentThreads": {queryRecentThreads, "CO-ROUTINE t\n" +
			"SEARCH messages USING INDEX messages_thread (chat_jid=?)\n" +
			"SCAN t\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryPosts":       {queryPosts, "SEARCH m USING INDEX messages_platform_id (chat_jid=? AND platform_id>? AND platform_id<?)"},
		"queryThreadPosts": {queryThreadPosts, "SEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=?)"},
		// All waiting rows of one platform.
		"queryOutboxLanes": {queryOutboxLanes, "CO-ROUTINE head\n" +
			"SETUP\n" +
			"SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_outbox (platform=?)\n" +
			"RECURSIVE STEP\n" +
			"SCAN head\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH n USING INDEX messages_outbox (platform=? AND (chat_jid,thread_id)>(?,?))\n" +
			"SCAN head\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"}, // one row per lane
		// one row per lane
		"queryOldOutbound": {queryOldOutbound, "SEARCH m USING INDEX messages_outbox (platform=?)\n" +
			"USE TEMP B-TREE FOR DISTINCT"},
		"queryNewOutbound": {queryNewOutbound, "SEARCH m USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)\n" +
			"USE TEMP B-TREE FOR DISTINCT"},
		"queryNextOutbound": {queryNextOutbound, "SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH chat_aliases USING PRIMARY KEY (old_jid=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH a USING COVERING INDEX chat_aliases_moving (new_jid=?)\n" +
			"SEARCH o EXISTS USING INDEX messages_outbox (platform=? AND chat_jid=?)"},
		// Those of one lane: decorations are few.
		"queryNextDecoration": {queryNextDecoration, "SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH chat_aliases USING PRIMARY KEY (old_jid=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH a USING COVERING INDEX chat_aliases_moving (new_jid=?)\n" +
			"SEARCH o EXISTS USING INDEX messages_outbox (platform=? AND chat_jid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"querySuperseded": {querySuperseded, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH messages USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=? AND id>?)"},
		// Few agents run at once, so a temporary table of their threads is small.
		"queryActiveLanes": {queryActiveLanes, "SCAN turns USING INDEX turns_run\n" +
			"USE TEMP B-TREE FOR DISTINCT"},
		"queryActiveTriggers": {queryActiveTriggers, "SCAN t USING INDEX turns_run\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		"queryUnreadSystem": {queryUnreadSystem, "CO-ROUTINE s\n" +
			"SEARCH system_messages USING INDEX system_messages_folder (folder=?)\n" +
			"SCAN s"},
		"queryPreviewTurns": {queryPreviewTurns, "SCAN t USING INDEX turns_run\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\n" +
			"SEARCH g USING PRIMARY KEY (folder=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING COVERING INDEX turns_run (run_id=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)"}, // few agents run at once
		// few agents run at once
		"queryPreviewTurn": {queryPreviewTurn, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\n" +
			"SEARCH g USING PRIMARY KEY (folder=?) LEFT-JOIN\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH o USING COVERING INDEX turns_run (run_id=? AND id<?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)"},
		"queryOpenPreviews": {queryOpenPreviews, "SEARCH previews USING INDEX previews_open (chat_jid>? AND chat_jid<?)"},
		"queryLanePreviews": {queryLanePreviews, "SEARCH previews USING INDEX previews_open (chat_jid=?)"},
		"queryPreviewShown": {queryPreviewShown, "SEARCH previews USING INDEX previews_open (chat_jid=?)"},
		"queryWantedFiles":  {queryWantedFiles, "SEARCH m USING INDEX messages_wanted (platform=?)"},
	})
}
