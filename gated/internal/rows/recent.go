package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// RecentRow is one of the recent rows of a chat: a message of a user or bot, or of the bot
// itself, with edits applied.
type RecentRow struct {
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

// said is the condition of messages of users and bots, and of the bot itself, as of row ?2. It leaves out commands and
// tokens, their answers, notices, reactions, joins, rows made from others, cancelled and failed ones, and messages of
// senders that a group ignores or does not admit, and turns that were taken back. e is the last edit or deletion of the row.
const said = `((m.direction = 'in' AND m.derived_from IS NULL
		AND ifnull(m.disposition, '') NOT IN ('sticky', 'command')
		AND ifnull(m.reason, '') NOT IN ('builtin_drop', 'no_access', 'pin_denied', 'duplicate', 'bad_row', 'deleted'))
		OR (m.direction = 'out' AND m.source NOT IN ('notice', 'command')
		AND ifnull(m.out_state, '') NOT IN ('failed', 'cancelled')))
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND (e.id IS NULL OR e.verb <> 'delete' AND e.kind <> 'delete')
		AND ` + counts

// counts is the condition of messages m that are of no turn, or of one that was not taken back. Of one with a #name or
// @name the row that was made from it is in the turn.
const counts = `NOT EXISTS (SELECT 1 FROM turns u WHERE u.id = m.turn_id AND u.undone_at IS NOT NULL)
		AND (m.disposition IS DISTINCT FROM 'prefix' OR NOT EXISTS (SELECT 1 FROM messages d INDEXED BY messages_derived JOIN turns u ON u.id = d.turn_id
			WHERE d.derived_from = m.id AND u.undone_at IS NOT NULL))`

// Of the newest 1000 spoken rows of the chat, thread or topic, the newest 100 that count. A poll is read whole.
const recentColumns = `SELECT m.id, m.turn_id, ifnull(m.platform_id, ''), ifnull(m.reply_to_id, ''), m.thread_id, m.timestamp, m.direction = 'out', ifnull(m.reason, '') = 'quoted', m.kind,
		m.sender, ` + store.ShortName + `, substr(ifnull(e.content, m.content), 1, CASE m.kind WHEN 'poll' THEN 65536 ELSE 2048 END), octet_length(ifnull(e.content, m.content)),
		CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END
		FROM (SELECT id FROM messages `

const recentRows = ` AND id <= ?2 ORDER BY id DESC LIMIT 1000) r JOIN messages m ON m.id = r.id
		LEFT JOIN messages e ON e.id = ` + store.LastChange + ` WHERE ` + said + ` ORDER BY r.id DESC LIMIT 100`

// Recent returns the newest 100 rows that count in a chat, up to a row id, oldest
// first. Only the newest 1,000 messages of users and bots are considered, not votes,
// reactions, edits and joins. Before those of a thread comes the row that it was
// opened from.
func Recent(ctx context.Context, r store.Reader, s Scope, upto int64) ([]RecentRow, error) {
	const queryRecent = recentColumns + `INDEXED BY messages_chat WHERE ` + store.Spoken + ` AND chat_jid = ?1` + recentRows
	const queryRecentThread = recentColumns + `INDEXED BY messages_thread WHERE thread_id <> '' AND ` + store.Spoken +
		` AND chat_jid = ?1 AND thread_id = ?3` + recentRows
	const queryRecentTopic = recentColumns + `INDEXED BY messages_web WHERE platform = 'web' AND ` + store.Spoken +
		` AND chat_jid = ?1 AND topic = ?3` + recentRows
	query, args := queryRecent, []any{s.ChatJID, upto}
	switch {
	case s.ThreadID != "":
		query, args = queryRecentThread, append(args, s.ThreadID)
	case s.WebTopic != nil:
		query, args = queryRecentTopic, append(args, *s.WebTopic)
	}
	rows, err := store.All(ctx, r, scanRecent, query, args...)
	if err != nil {
		return nil, err
	}
	if s.ThreadID != "" {
		opening, err := recentOpening(ctx, r, s, upto)
		if err != nil {
			return nil, err
		}
		rows = append(rows, opening...)
	}
	slices.Reverse(rows)
	return rows, linkRecent(ctx, r, rows)
}

// recentOpening is the row that a thread was opened from, by any of its parts; none if the thread has it itself, as
// posts of forums do, or began without one.
func recentOpening(ctx context.Context, r store.Reader, s Scope, upto int64) ([]RecentRow, error) {
	// The row that a thread was opened from, which is none of the thread.
	const query = recentColumns + `WHERE id = ?3 AND ` + store.Spoken + ` AND chat_jid = ?1 AND thread_id <> ?4` +
		recentRows
	m, err := r.MessageByPlatformID(ctx, s.ChatJID, s.ThreadID)
	if err != nil || m == nil {
		return nil, err
	}
	rows, err := store.All(ctx, r, scanRecent, query, s.ChatJID, upto, m.ID, s.ThreadID)
	for i := range rows {
		rows[i].Opens, rows[i].platformID = true, s.ThreadID
	}
	return rows, err
}

func scanRecent(scan store.Scan) (m RecentRow, err error) {
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
func linkRecent(ctx context.Context, r store.Reader, rows []RecentRow) error {
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
	parts := slices.ContainsFunc(rows, func(m RecentRow) bool {
		return m.replyTo != "" && known[m.replyTo] == 0 &&
			!m.Own
	})
	if parts && len(own) > 0 {
		if err := addParts(ctx, r, own, known); err != nil {
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

// addParts adds the platform ids of all parts of rows.
func addParts(ctx context.Context, r store.Reader, rows []int64, known map[string]int64) error {
	const query = `SELECT d.platform_id, d.message_id FROM json_each(?) own CROSS JOIN deliveries d ON d.message_id = CAST(own.value AS INTEGER)
		WHERE d.platform_id IS NOT NULL`
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return r.Each(ctx, func(scan store.Scan) (bool, error) {
		var platformID string
		var id int64
		err := scan(&platformID, &id)
		known[platformID] = id
		return true, err
	}, query, string(list))
}
