package rows

// Statements for a copy of the database: the first counts all of an index, once, the others change the copy before it is
// used. ?1 is the time in unix ms.
const (
	queryCountMessages = `SELECT count(*) FROM messages`

	updateSkipIDs = `UPDATE sqlite_sequence SET seq = seq + ?`

	updateCancelParts = `UPDATE deliveries SET not_before = 0, updated_at = ?1, state = CASE state WHEN 'sending' THEN 'ambiguous' ELSE 'cancelled' END
		WHERE state IN ('queued', 'sending') AND message_id IN (SELECT id FROM messages WHERE out_state IN ('queued', 'sending'))`
	updateCancelOutbound = `UPDATE messages SET out_state = CASE WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = messages.id
		AND d.state IN ('sent', 'ambiguous')) THEN 'ambiguous' ELSE 'cancelled' END WHERE out_state IN ('queued', 'sending')`
	deleteOpenSystem = `DELETE FROM system_messages WHERE event = 'new_session'
		AND turn_id IN (SELECT id FROM turns WHERE state IN ('queued', 'running'))`
	updateReleaseOpenSystem = `UPDATE system_messages SET turn_id = NULL
		WHERE turn_id IN (SELECT id FROM turns WHERE state IN ('queued', 'running'))`
	updateCancelTurns = `UPDATE turns SET state = 'cancelled', reason = 'cancelled', waits_for = '', ended_at = ?1
		WHERE state IN ('queued', 'running')`
	updateWithdrawApprovals = `UPDATE onboarding_requests SET folder = NULL, decided_by = NULL WHERE state = 'pending' AND folder IS NOT NULL`
	updateDropUndecided     = `UPDATE messages SET disposition = 'dropped', reason = 'stopped', decided_at = ?1,
		decision_seq = (SELECT value FROM router_state WHERE key = ?2) WHERE direction = 'in' AND disposition IS NULL`
)
