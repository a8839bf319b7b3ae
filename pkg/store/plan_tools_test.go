package store

import "fmt"

// toolPlans has the expected plan of every statement in queries_tools.go.
func toolPlans() map[string][2]string {
	// Of each row its last change, and of a poll its options.
	changed := func(n int) string {
		return fmt.Sprintf("\nSEARCH e USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nCORRELATED SCALAR SUBQUERY %d\n"+
			"SEARCH c USING INDEX messages_target (chat_jid=? AND target_id=? AND rowid<?)\nCORRELATED SCALAR SUBQUERY %d\n"+
			"SEARCH c USING INDEX messages_derived (derived_from=? AND rowid<?)", n, n+1)
	}
	pollWords := func(n int) string {
		return fmt.Sprintf("\nCORRELATED SCALAR SUBQUERY %d\nSCAN json_each VIRTUAL TABLE INDEX 1:", n)
	}
	return map[string][2]string{
		"queryToolCall":      {queryToolCall, "SEARCH tool_calls USING PRIMARY KEY (turn_id=? AND call=?)"},
		"queryToolCalls":     {queryToolCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\nUSE TEMP B-TREE FOR ORDER BY"}, // at most some hundred
		"queryToolCallCount": {queryToolCallCount, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)"},
		"queryGroupCalls":    {queryGroupCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\nLIST SUBQUERY 1\nSEARCH turns USING INDEX turns_folder (folder=?)"},
		"queryCallsOfRoot": {queryCallsOfRoot, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\nLIST SUBQUERY 2\nCOMPOUND QUERY\nLEFT-MOST SUBQUERY\n" +
			"SEARCH turns USING COVERING INDEX turns_root (root_turn_id=?)\nUNION ALL\nSCAN CONSTANT ROW"},
		"insertToolCall":     {insertToolCall, noRead},
		"queryChatFileBytes": {queryChatFileBytes, "SEARCH m USING INDEX messages_files (chat_jid=? AND received_at>?)\nSCAN a VIRTUAL TABLE INDEX 1:"},
		"queryThreadOfTopic": {queryThreadOfTopic, "SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)"}, // a few of a chat
		"queryHasThread": {queryHasThread, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH platform_threads USING PRIMARY KEY (chat_jid=? AND thread_id=?)\n" +
			"SCALAR SUBQUERY 2\nSEARCH messages USING INDEX messages_thread (chat_jid=? AND thread_id=?)"},
		"querySearchChatPage":   {querySearchChatPage, "SEARCH messages USING INDEX messages_chat (chat_jid=? AND id<?)"},
		"querySearchRoutedPage": {querySearchRoutedPage, "SEARCH messages USING INDEX messages_routed (routed_to=? AND decision_seq<?)"},
		"querySearchChat":       {querySearchChat, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)" + changed(1) + pollWords(3)},
		"querySearchRouted": {querySearchRouted, "SEARCH m USING INDEX messages_routed (routed_to=? AND decision_seq>? AND decision_seq<?)" +
			"\nCORRELATED SCALAR SUBQUERY 4\nSEARCH c USING PRIMARY KEY (jid=?)" + changed(1) + pollWords(3)},
		"queryBeforeMessage": {queryBeforeMessage, "CO-ROUTINE o\nSEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id<?)\nSCAN o\n" + messageRow + changed(2)},
		"queryAfterMessage":  {queryAfterMessage, "CO-ROUTINE o\nSEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id>?)\nSCAN o\n" + messageRow + changed(2)},
	}
}
