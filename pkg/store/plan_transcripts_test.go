package store

// transcriptPlans has the expected plan of every statement in queries_transcripts.go.
func transcriptPlans() map[string][2]string {
	row := "SEARCH transcripts USING INTEGER PRIMARY KEY (rowid=?)"
	return map[string][2]string{
		"insertTranscript": {insertTranscript, noRead},
		"queryWantedTranscripts": {queryWantedTranscripts, "SCAN x USING INDEX transcripts_wanted\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryTranscripts":        {queryTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"updateTranscriptUntil":   {updateTranscriptUntil, row},
		"updateHeldTurn":          {updateHeldTurn, "SEARCH turns USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteWantedTranscripts": {deleteWantedTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"deleteTranscriptsOf":     {deleteTranscriptsOf, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
		"updateTranscriptEnd":     {updateTranscriptEnd, row},
	}
}
