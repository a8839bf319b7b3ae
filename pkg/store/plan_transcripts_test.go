package store

// transcriptPlans has the expected plan of every statement in queries_transcripts.go.
func transcriptPlans() map[string][2]string {
	return map[string][2]string{
		"queryTranscripts": {queryTranscripts, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},

		"deleteTranscriptsOf": {deleteTranscriptsOf, "SEARCH transcripts USING INDEX sqlite_autoindex_transcripts_1 (message_id=?)"},
	}
}
