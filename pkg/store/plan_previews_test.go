package store

// previewPlans has the expected plan of every statement in queries_previews.go.
func previewPlans() map[string][2]string {
	turn := "SEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nSEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN\n" +
		"SEARCH g USING PRIMARY KEY (folder=?) LEFT-JOIN\nCORRELATED SCALAR SUBQUERY 1\n" +
		"SEARCH o USING COVERING INDEX turns_run (run_id=? AND id<?)\nCORRELATED SCALAR SUBQUERY 2\n" +
		"SEARCH m USING INDEX messages_outbox (platform=? AND chat_jid=? AND thread_id=?)"
	return map[string][2]string{
		"queryPreviewTurns": {queryPreviewTurns, "SCAN t USING INDEX turns_run\n" + turn}, // few agents run at once
		"queryPreviewTurn":  {queryPreviewTurn, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" + turn},
		"queryOpenPreviews": {queryOpenPreviews, "SEARCH previews USING INDEX previews_open (chat_jid>? AND chat_jid<?)"},
		"queryLanePreviews": {queryLanePreviews, "SEARCH previews USING INDEX previews_open (chat_jid=?)"},
		"queryPreviewShown": {queryPreviewShown, "SEARCH previews USING INDEX previews_open (chat_jid=?)"},
	}
}
