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
	ID          int64
	Parent      int64 // the row that it replies to, 0 if that is none of the recent ones
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
// reactions, edits and joins.
func (r Reader) Recent(ctx context.Context, s Scope, upto int64) ([]Recent, error) {
	query, args := queryRecent, []any{s.ChatJID, upto}
	switch {
	case s.ThreadID != "":
		query, args = queryRecentThread, append(args, s.ThreadID)
	case s.WebTopic != nil:
		query, args = queryRecentTopic, append(args, *s.WebTopic)
	}
	rows, err := collect(ctx, r.q, scanRecent, query, args...)
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows)
	return rows, r.linkRecent(ctx, rows)
}

func scanRecent(scan scanner) (m Recent, err error) {
	var size int
	var turn sql.NullInt64
	var attachments sql.NullString
	err = scan(&m.ID, &turn, &m.platformID, &m.replyTo, &m.Timestamp, &m.Own, &m.Quoted, &m.Kind, &m.Sender, &m.SenderName, &m.Content, &size, &attachments)
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
	parts := false
	for i := range rows {
		m := &rows[i]
		m.Parent = known[m.replyTo]
		parts = parts || m.replyTo != "" && m.Parent == 0 && !m.Own
	}
	if !parts || len(own) == 0 {
		return nil
	}
	list, err := json.Marshal(own)
	if err != nil {
		return err
	}
	err = r.q.each(ctx, func(scan scanner) (bool, error) {
		var platformID string
		var id int64
		err := scan(&platformID, &id)
		known[platformID] = id
		return true, err
	}, queryRecentParts, string(list))
	for i := range rows {
		rows[i].Parent = known[rows[i].replyTo]
	}
	return err
}

// Change is the last edit or deletion of a message.
type Change struct {
	Deleted bool
	Content string // after the edit
}

// LastChange returns the last change of a row up to a row id, nil if there is none.
func (r Reader) LastChange(ctx context.Context, id, upto int64) (*Change, error) {
	var c Change
	found, err := r.q.get(ctx, []any{&c.Deleted, &c.Content}, queryChange, id, upto)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}
