package store

import (
	"context"

	"arizuko/pkg/msg"
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
	// MinAuditDays is how long a change is kept at least, if there are not more than that.
	MinAuditDays = 365
)

// OldestAudit returns the oldest change that is kept, nil if there is none. Its id is 1 if none was deleted.
func (r Reader) OldestAudit(ctx context.Context) (*AuditRow, error) {
	rows, err := collect(ctx, r, scanAudit, queryOldestAudit)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// PurgeAudit deletes of the oldest changes, as many as limit, those from before a time, in unix ms, and those beyond
// MaxAuditRows.
func (tx *Tx) PurgeAudit(before int64, limit int) (deleted int, err error) {
	n, err := tx.change(deleteOldAudit, before, MaxAuditRows, limit)
	return int(n), err
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
	return collect(ctx, r, scanAudit, query, append(args, beforeOrAll(q.Before), q.Limit)...)
}

func scanAudit(scan scanner) (a AuditRow, err error) {
	err = scan(&a.ID, &a.At, &a.Who, &a.What, &a.Detail)
	return a, err
}

// AuditWhats returns the kinds of changes that were made, sorted, at most the limit.
func (r Reader) AuditWhats(ctx context.Context, limit int) ([]string, error) {
	return collect(ctx, r, func(scan scanner) (what string, err error) {
		err = scan(&what)
		return what, err
	}, queryAuditWhats, limit)
}

// beforeOrAll is the id that a page of rows ends before; 0 is none.
func beforeOrAll(id int64) int64 {
	if id <= 0 {
		return 1<<63 - 1
	}
	return id
}

// Inbound is a stored message as routes see it: what an edited table is compared by.
type Inbound struct {
	ID         int64
	ChatJID    string
	Kind       string // of the chat, "" if it is not known
	Title      string // of the chat
	Pinned     string // the group that the chat is pinned to now, "" for none
	Topic      string
	ThreadID   string
	Sender     string
	SenderName string
	Verb       string
	PlatformID string
	ReceivedAt int64  // unix ms
	Change     bool   // an edit or a deletion
	Own        bool   // between groups, or made here
	Reason     string // why it was decided as it was, "" if it was not yet
	Folder     string // the group that got it, "" for none
	Content    string // its first 300 characters
}

// maxInboundScan bounds how many of the newest rows are read to find inbound ones, for each that is wanted.
const maxInboundScan = 20

// NewestInbound returns the newest inbound messages, the newest first.
func (r Reader) NewestInbound(ctx context.Context, limit int) ([]Inbound, error) {
	return collect(ctx, r, func(scan scanner) (m Inbound, err error) {
		err = scan(&m.ID, &m.ChatJID, &m.Kind, &m.Title, &m.Pinned, &m.Topic, &m.ThreadID, &m.Sender, &m.SenderName,
			&m.Verb,
			&m.PlatformID, &m.ReceivedAt, &m.Change, &m.Own, &m.Reason, &m.Folder, &m.Content)
		return m, err
	}, queryNewestInbound, limit, int64(limit)*maxInboundScan)
}

// DecidedInbound returns inbound messages that were decided at a time, in unix ms, or later, at most the limit, the
// newest first.
func (r Reader) DecidedInbound(ctx context.Context, since int64, limit int) ([]*msg.Message, error) {
	return r.messages(ctx, queryDecidedInbound, since, limit, int64(limit)*maxInboundScan)
}

// TableChangedAt is when routes or groups were changed last, in unix ms, as far as the audit tells: it does not have
// changes by SQL. 0 is never.
func (r Reader) TableChangedAt(ctx context.Context) (at int64, err error) {
	for _, what := range []string{"add route", "change route", "delete route", "reorder routes", "add group",
		"change group", "delete group", AuditMove} {
		rows, err := r.Audit(ctx, AuditQuery{What: what, Limit: 1})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			at = max(at, row.At)
		}
	}
	return at, nil
}

// ChatTitle is a chat with its title.
type ChatTitle struct {
	JID   string
	Kind  string
	Title string
}

// NewestChats returns the chats in which something happened last, at most the limit.
func (r Reader) NewestChats(ctx context.Context, limit int) ([]ChatTitle, error) {
	return collect(ctx, r, func(scan scanner) (c ChatTitle, err error) {
		err = scan(&c.JID, &c.Kind, &c.Title)
		return c, err
	}, queryNewestChats, limit)
}
