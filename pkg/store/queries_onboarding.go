package store

// Statements about requests of chats to be connected. The title is the chat's present one, if its
// adapter knows it.
const (
	RequestColumns = `SELECT r.code, r.chat_jid, r.kind, r.sender, r.sender_name, ifnull(nullif(c.title, ''), r.title), r.sample, r.thread_id,
		r.state, ifnull(r.folder, ''), ifnull(r.decided_by, ''), ifnull(r.decided_at, 0), r.reason, r.created_at
		FROM onboarding_requests r`
	RequestChat = ` LEFT JOIN chats c ON c.jid = r.chat_jid`

	queryPendingRequest = RequestColumns + ` INDEXED BY onboarding_pending` + RequestChat +
		` WHERE r.state = 'pending' AND r.chat_jid = ?`

	queryLastDecided = RequestColumns + ` INDEXED BY onboarding_chat` + RequestChat +
		` WHERE r.chat_jid = ? AND r.state <> 'pending'
		ORDER BY r.created_at DESC LIMIT 1`
	queryRequests = RequestColumns + ` INDEXED BY onboarding_created` + RequestChat + ` WHERE (?1 = '' OR r.state = ?1)
		ORDER BY r.created_at DESC LIMIT ?2+0`

	// Of a platform's direct chats the one with the sender's newest message.
	queryDirectChat = `SELECT c.jid FROM chats c JOIN messages m ON m.id = (SELECT max(i.id) FROM messages i INDEXED BY messages_chat
		WHERE i.chat_jid = c.jid AND i.direction = 'in')
		WHERE c.kind = 'dm' AND c.platform = ? AND m.sender = ? ORDER BY m.id DESC LIMIT 1`

	queryLastVerb = `SELECT verb FROM messages INDEXED BY messages_chat WHERE chat_jid = ? AND direction = 'in' ORDER BY id DESC LIMIT 1`

	// A chat that moves: if both addresses have a pending request, one ends; that which is being
	// approved stays, else that of the new address.
	updateMergeRequests = `UPDATE onboarding_requests SET state = 'expired', decided_by = 'move', decided_at = ?3
		WHERE state = 'pending' AND chat_jid = (SELECT CASE WHEN o.folder IS NOT NULL AND n.folder IS NULL THEN ?2 ELSE ?1 END
			FROM onboarding_requests o, onboarding_requests n
			WHERE o.state = 'pending' AND o.chat_jid = ?1 AND n.state = 'pending' AND n.chat_jid = ?2)`

	insertAudit = `INSERT INTO audit (at, who, what, detail) VALUES (?,?,?,?)`
)
