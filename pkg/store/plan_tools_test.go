package store

// toolPlans has the expected plan of every statement in queries_tools.go.
func toolPlans() map[string][2]string {
	const deletion = "\nCORRELATED SCALAR SUBQUERY 2\nSEARCH d USING INDEX messages_target (chat_jid=? AND target_id=?)"
	const searchDeletion = "\nCORRELATED SCALAR SUBQUERY 1\nSEARCH d USING INDEX messages_target (chat_jid=? AND target_id=?)"
	return map[string][2]string{
		"queryToolCall":      {queryToolCall, "SEARCH tool_calls USING PRIMARY KEY (turn_id=? AND call=?)"},
		"queryToolCallCount": {queryToolCallCount, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)"},
		"queryCallsOfRoot": {queryCallsOfRoot, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\nLIST SUBQUERY 2\nCOMPOUND QUERY\nLEFT-MOST SUBQUERY\n" +
			"SEARCH turns USING COVERING INDEX turns_root (root_turn_id=?)\nUNION ALL\nSCAN CONSTANT ROW"},
		"insertToolCall":     {insertToolCall, noRead},
		"queryChatFileBytes": {queryChatFileBytes, "SEARCH m USING INDEX messages_files (chat_jid=? AND received_at>?)\nSCAN a VIRTUAL TABLE INDEX 1:"},
		"queryThreadOfTopic": {queryThreadOfTopic, "SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)"}, // a few of a chat
		"queryHasThread": {queryHasThread, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\nSEARCH platform_threads USING PRIMARY KEY (chat_jid=? AND thread_id=?)\n" +
			"SCALAR SUBQUERY 3\nCO-ROUTINE (subquery-2)\nSEARCH messages USING INDEX messages_chat (chat_jid=?)\nSCAN (subquery-2)"},
		"querySearchChatPage":   {querySearchChatPage, "SEARCH messages USING INDEX messages_chat (chat_jid=? AND id<?)"},
		"querySearchRoutedPage": {querySearchRoutedPage, "SEARCH messages USING INDEX messages_routed (routed_to=? AND decision_seq<?)"},
		"querySearchChat":       {querySearchChat, "SEARCH m USING INDEX messages_chat (chat_jid=? AND id>? AND id<?)" + searchDeletion},
		"querySearchRouted": {querySearchRouted, "SEARCH m USING INDEX messages_routed (routed_to=? AND decision_seq>? AND decision_seq<?)" + searchDeletion +
			"\nCORRELATED SCALAR SUBQUERY 2\nSEARCH c USING PRIMARY KEY (jid=?)"},
		"queryBeforeMessage": {queryBeforeMessage, "CO-ROUTINE c\nSEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id<?)\nSCAN c\n" + messageRow + deletion},
		"queryAfterMessage":  {queryAfterMessage, "CO-ROUTINE c\nSEARCH messages USING COVERING INDEX messages_chat (chat_jid=? AND id>?)\nSCAN c\n" + messageRow + deletion},
	}
}
