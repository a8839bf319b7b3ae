package store

// Statements about active context objects. A chat has about a hundred of them.
const (
	deleteEndedOfChat    = `DELETE FROM context_objects WHERE chat_id = ? AND active_until <= ?`
	deleteUnmovedContext = `DELETE FROM context_objects WHERE chat_id = ?`
)
