package rows

import (
	"context"

	"arizuko/pkg/store"
)

const (
	auditColumns  = `SELECT id, at, who, what, detail FROM audit`
	queryAudit    = auditColumns + ` WHERE id < ? ORDER BY id DESC LIMIT ?+0`
	queryAuditWho = auditColumns +
		` INDEXED BY audit_who WHERE who = ?1 AND (?2 = '' OR what = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4+0`
	queryAuditWhat   = auditColumns + ` INDEXED BY audit_what WHERE what = ? AND id < ? ORDER BY id DESC LIMIT ?+0`
	queryOldestAudit = auditColumns + ` ORDER BY id LIMIT 1`
)

// AuditRow is one change: who made it, and when.
type AuditRow struct {
	ID     int64
	At     int64 // unix ms
	Who    string
	What   string
	Detail string
}

// AuditQuery selects changes, the newest first.
type AuditQuery struct {
	Who, What string // exactly; "" is any
	Before    int64  // only rows with a lower id; 0 is from the newest on
	Limit     int
}

// AuditMove is the entry of the audit for the move of a chat to another address.
const AuditMove = "move chat"

// MaxAuditRows is how many changes are kept at most: 10 MB of rows.
const MaxAuditRows = 50_000

// OldestAudit returns the oldest change that is kept, nil if there is none. Its id is 1 if none was deleted.
func OldestAudit(ctx context.Context, r store.Reader) (*AuditRow, error) {
	rows, err := store.All(ctx, r, scanAudit, queryOldestAudit)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Audit returns changes, the newest first.
func Audit(ctx context.Context, r store.Reader, q AuditQuery) ([]AuditRow, error) {
	query, args := queryAudit, []any{}
	switch {
	case q.Who != "":
		query, args = queryAuditWho, append(args, q.Who, q.What)
	case q.What != "":
		query, args = queryAuditWhat, append(args, q.What)
	}
	return store.All(ctx, r, scanAudit, query, append(args, store.OrNewest(q.Before), q.Limit)...)
}

func scanAudit(scan store.Scan) (a AuditRow, err error) {
	err = scan(&a.ID, &a.At, &a.Who, &a.What, &a.Detail)
	return a, err
}
