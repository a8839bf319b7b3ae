package store

// toolPlans has the expected plan of every statement in queries_tools.go.
func toolPlans() map[string][2]string {
	// Of each row its last change, and of a poll its options.
	return map[string][2]string{
		"queryToolCalls": {queryToolCalls, "SEARCH tool_calls USING PRIMARY KEY (turn_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},

		"queryChatFileBytes": {queryChatFileBytes, "SEARCH m USING INDEX messages_files (chat_jid=? AND received_at>?)\nSCAN a VIRTUAL TABLE INDEX 1:"},
	}
}
