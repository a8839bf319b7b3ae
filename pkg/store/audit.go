package store

import (
	"context"
)

const (
	auditColumns  = `SELECT id, at, who, what, detail FROM audit`
	queryAudit    = auditColumns + ` WHERE id < ? ORDER BY id DESC LIMIT ?+0`
	queryAuditWho = auditColumns +
		` INDEXED BY audit_who WHERE who = ?1 AND (?2 = '' OR what = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4+0`
	queryAuditWhat   = auditColumns + ` INDEXED BY audit_what WHERE what = ? AND id < ? ORDER BY id DESC LIMIT ?+0`
	queryOldestAudit = auditColumns + ` ORDER BY id LIMIT 1`
)

// AuditRow is a change that was made: who changed what, and when.
type AuditRow struct {
	ID     int64
	At     int64 // unix ms
	Who    string
	What   string
	Detail string
}

// AuditQuery is which changes are read, the newest first.
type AuditQuery struct {
	Who, What string // exactly; "" is any
	Before    int64  // only rows with a lower id; 0 is from the newest on
	Limit     int
}

const (
	// MaxAuditRows is how many changes are kept at most: 10 MB of rows.
	MaxAuditRows = 50_000
)

// OldestAudit returns the oldest change that is kept, nil if there is none. Its id is 1 if none was deleted.
func (r Reader) OldestAudit(ctx context.Context) (*AuditRow, error) {
	rows, err := All(ctx, r, scanAudit, queryOldestAudit)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Audit returns changes, the newest first.
func (r Reader) Audit(ctx context.Context, q AuditQuery) ([]AuditRow, error) {
	query, args := queryAudit, []any{}
	switch {
	case q.Who != "":
		query, args = queryAuditWho, append(args, q.Who, q.What)
	case q.What != "":
		query, args = queryAuditWhat, append(args, q.What)
	}
	return All(ctx, r, scanAudit, query, append(args, beforeOrAll(q.Before), q.Limit)...)
}

func scanAudit(scan Scan) (a AuditRow, err error) {
	err = scan(&a.ID, &a.At, &a.Who, &a.What, &a.Detail)
	return a, err
}

// beforeOrAll is the id that a page of rows ends before; 0 is none.
func beforeOrAll(id int64) int64 {
	if id <= 0 {
		return 1<<63 - 1
	}
	return id
}

// maxInboundScan bounds how many of the newest rows are read to find inbound ones, for each that is wanted.
const MaxInboundScan = 20
