package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"arizuko/pkg/msg"
)

// Recent is one of the recent rows of a chat: what a user or bot said, or a message of
// the bot itself, with edits applied.
type Recent struct {
	ID int64
	// the row that it replies to, or that its thread was opened from; 0 if that is none of the recent ones
	Parent      int64
	ThreadID    string
	Opens       bool // the thread that is read was opened from it
	TurnID      int64
	Timestamp   int64
	Own         bool // the bot's
	Quoted      bool // it is known only since a message that answers, quotes or forwards it brought it along
	Kind        msg.Kind
	Sender      string
	SenderName  string
	Content     string // its first 2048 characters; of a poll all
	Omitted     int    // bytes of the content that are left out
	Attachments []msg.Attachment

	platformID, replyTo string
}

// Scope is the part of a chat whose recent rows are read: one thread, else one topic
// of a web chat, else all of it.
type Scope struct {
	ChatJID  string
	ThreadID string
	WebTopic *string
}

// Recent returns the newest 100 rows that count in a chat, up to a row id, oldest
// first. Only the newest 1,000 messages of users and bots are considered, not votes,
// reactions, edits and joins. Before those of a thread comes the row that it was
// opened from.
func (r Reader) Recent(ctx context.Context, s Scope, upto int64) ([]Recent, error) {
	query, args := queryRecent, []any{s.ChatJID, upto}
	switch {
	case s.ThreadID != "":
		query, args = queryRecentThread, append(args, s.ThreadID)
	case s.WebTopic != nil:
		query, args = queryRecentTopic, append(args, *s.WebTopic)
	}
	rows, err := collect(ctx, r, scanRecent, query, args...)
	if err != nil {
		return nil, err
	}
	if s.ThreadID != "" {
		opening, err := r.recentOpening(ctx, s, upto)
		if err != nil {
			return nil, err
		}
		rows = append(rows, opening...)
	}
	slices.Reverse(rows)
	return rows, r.linkRecent(ctx, rows)
}

// recentOpening is the row that a thread was opened from, of which any part may be meant; none if the thread has it
// itself, as posts of forums do, or began without one.
func (r Reader) recentOpening(ctx context.Context, s Scope, upto int64) ([]Recent, error) {
	m, err := r.MessageByPlatformID(ctx, s.ChatJID, s.ThreadID)
	if err != nil || m == nil {
		return nil, err
	}
	rows, err := collect(ctx, r, scanRecent, queryRecentOpening, s.ChatJID, upto, m.ID, s.ThreadID)
	for i := range rows {
		rows[i].Opens, rows[i].platformID = true, s.ThreadID
	}
	return rows, err
}

func scanRecent(scan scanner) (m Recent, err error) {
	var size int
	var turn sql.NullInt64
	var attachments sql.NullString
	err = scan(&m.ID, &turn, &m.platformID, &m.replyTo, &m.ThreadID, &m.Timestamp, &m.Own, &m.Quoted, &m.Kind,
		&m.Sender, &m.SenderName, &m.Content, &size, &attachments)
	m.TurnID, m.Omitted = turn.Int64, max(0, size-len(m.Content))
	if attachments.Valid && json.Unmarshal([]byte(attachments.String), &m.Attachments) != nil {
		m.Attachments = nil // JSON of another shape, by a foreign adapter
	}
	return m, err
}

// linkRecent sets the parents of rows. A reply may name any part of a message of the
// bot, so the parts are read if a user's reply names none of the rows.
func (r Reader) linkRecent(ctx context.Context, rows []Recent) error {
	known := make(map[string]int64, len(rows))
	var own []int64
	for i := range rows {
		if rows[i].platformID != "" {
			known[rows[i].platformID] = rows[i].ID
		}
		if rows[i].Own {
			own = append(own, rows[i].ID)
		}
	}
	parts := slices.ContainsFunc(rows, func(m Recent) bool {
		return m.replyTo != "" && known[m.replyTo] == 0 &&
			!m.Own
	})
	if parts && len(own) > 0 {
		if err := r.parts(ctx, own, known); err != nil {
			return err
		}
	}
	for i := range rows {
		m := &rows[i]
		m.Parent = known[m.replyTo]
		if opening := known[m.ThreadID]; m.Parent == 0 && opening != m.ID {
			m.Parent = opening
		}
	}
	return nil
}

// parts adds the platform ids of all parts of rows.
func (r Reader) parts(ctx context.Context, rows []int64, known map[string]int64) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return r.each(ctx, func(scan scanner) (bool, error) {
		var platformID string
		var id int64
		err := scan(&platformID, &id)
		known[platformID] = id
		return true, err
	}, queryRecentParts, string(list))
}

// Change is the last edit or deletion of a message.
type Change struct {
	Deleted bool
	Content string // after the edit
}

// LastChange returns the last change of a row up to a row id, nil if there is none.
func (r Reader) LastChange(ctx context.Context, id, upto int64) (*Change, error) {
	var c Change
	found, err := r.get(ctx, []any{&c.Deleted, &c.Content}, queryChange, id, upto)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}
