// Package rows has the statements that onbod alone needs, about requests.
package rows

import (
	factrows "arizuko/pkg/facts/rows"
)

const (
	queryRequest         = factrows.RequestColumns + factrows.RequestChat + ` WHERE r.code = ?`
	queryPendingRequests = factrows.RequestColumns + ` INDEXED BY onboarding_pending` + factrows.RequestChat +
		` WHERE r.state = 'pending'`
	queryRequestsOfSender  = `SELECT count(*) FROM onboarding_requests INDEXED BY onboarding_sender WHERE sender = ? AND created_at > ? AND created_at <= ?`
	queryRequestsSince     = `SELECT count(*) FROM onboarding_requests INDEXED BY onboarding_created WHERE created_at > ? AND created_at <= ?`
	queryRequestsPending   = `SELECT count(*) FROM onboarding_requests INDEXED BY onboarding_pending WHERE state = 'pending'`
	updateWithdrawApproval = `UPDATE onboarding_requests SET folder = NULL, decided_by = NULL WHERE code = ? AND state = 'pending'`
	updateReopenRequest    = `UPDATE onboarding_requests SET state = 'pending', folder = NULL, decided_by = NULL, reason = '', decided_at = NULL, created_at = ?
		WHERE code = ? AND state IN ('rejected', 'expired')`
	deleteOldRequests = `DELETE FROM onboarding_requests WHERE code IN (SELECT code FROM onboarding_requests INDEXED BY onboarding_created
		WHERE created_at < ?1 AND decided_at < ?1 ORDER BY created_at LIMIT ?2+0)`
	// The time from which on the newest ?1 requests were made.
	queryNthRequest = `SELECT created_at FROM onboarding_requests ORDER BY created_at DESC LIMIT 1 OFFSET ?+0`

	// A turn that never started has made no files.
	queryFolderUsed = `SELECT EXISTS (SELECT 1 FROM registered_groups WHERE folder = ?1) OR EXISTS (SELECT 1 FROM sessions WHERE group_folder = ?1)
		OR EXISTS (SELECT 1 FROM turns INDEXED BY turns_folder WHERE folder = ?1 AND started_at IS NOT NULL)`

	insertRequest = `INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, thread_id, state, created_at)
		VALUES (?,?,?,?,?,?,?,?,'pending',?)`
	updateNoteApproval  = `UPDATE onboarding_requests SET folder = ?, decided_by = ? WHERE code = ? AND state = 'pending' AND folder IS NULL`
	updateDecideRequest = `UPDATE onboarding_requests SET state = ?, folder = ?, decided_by = ?, reason = ?, decided_at = ?
		WHERE code = ? AND state = 'pending'`
)
