package store

// Statements that delete history. ?1 is a row's id, ?2 the time before which rows
// are deleted, in unix ms. A page of rows is read outside a transaction, then each
// row is checked in the one that deletes it.
const (
	queryAttachments = `SELECT id, ` + shortAttachments + ` FROM messages m WHERE m.id > ? ORDER BY m.id LIMIT ?+0`
	// Of open turns and of messages that are not sent yet.
	queryNeededFiles = `SELECT 0, ` + shortAttachments +
		` FROM turns t INDEXED BY turns_open CROSS JOIN messages m INDEXED BY messages_turn ON m.turn_id = t.id
		WHERE t.state IN ('queued', 'running') AND m.attachments IS NOT NULL
		UNION ALL SELECT 0, ` + shortAttachments + ` FROM messages m INDEXED BY messages_outbox
		WHERE m.out_state IN ('queued', 'sending') AND m.attachments IS NOT NULL`
)
