package store

const (
	queryTranscripts = `SELECT n, text, error FROM transcripts WHERE message_id = ? ORDER BY n`

	deleteTranscriptsOf = `DELETE FROM transcripts WHERE message_id = ?`
)
