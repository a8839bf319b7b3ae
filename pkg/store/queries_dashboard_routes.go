package store

// Statements of the dashboard's pages of routes and of changes.
const (
	auditColumns  = `SELECT id, at, who, what, detail FROM audit`
	queryAudit    = auditColumns + ` WHERE id < ? ORDER BY id DESC LIMIT ?+0`
	queryAuditWho = auditColumns +
		` INDEXED BY audit_who WHERE who = ?1 AND (?2 = '' OR what = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4+0`
	queryAuditWhat   = auditColumns + ` INDEXED BY audit_what WHERE what = ? AND id < ? ORDER BY id DESC LIMIT ?+0`
	queryOldestAudit = auditColumns + ` ORDER BY id LIMIT 1`
)
