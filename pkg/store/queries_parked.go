package store

// Statements about rows that wait for an approval.
const (
	QueryParkedIDs = `SELECT id FROM messages INDEXED BY messages_parked
		WHERE disposition = 'onboarding' AND chat_jid = ? ORDER BY id LIMIT ?+0`
)
