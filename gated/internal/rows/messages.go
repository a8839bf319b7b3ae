package rows

import (
	"context"
	"slices"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// DecidedInbound returns inbound messages that were decided at a time, in unix ms, or later, at most the limit, the
// newest first.
func DecidedInbound(ctx context.Context, r store.Reader, since int64, limit int) ([]*msg.Message, error) {
	const query = `SELECT ` + store.MessageColumns +
		` FROM messages m WHERE m.direction = 'in' AND m.disposition IS NOT NULL AND m.decided_at >= ?1
		AND m.id > (SELECT max(id) FROM messages) - ?3 ORDER BY m.id DESC LIMIT ?2+0`
	return r.Messages(ctx, query, since, limit, int64(limit)*store.MaxInboundScan)
}

// NewRows says which chats have new rows.
type NewRows struct {
	Chats   []string // of undecided inbound rows, each once, in order of arrival
	Arrived int64    // when the first of those was received, in unix ms, 0 for none
	Last    int64    // the last row read, 0 for none
	More    bool     // as many as the limit were read
}

// NewMessages reads the rows after the floor that were not seen before, at most limit.
func NewMessages(ctx context.Context, r store.Reader, floor *store.Floor, limit int) (n NewRows, err error) {
	const query = `SELECT id, chat_jid, direction = 'in' AND disposition IS NULL, received_at
		FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`
	if err := floor.Ask(ctx, r); err != nil {
		return n, err
	}
	limit += floor.Seen()
	read, err := store.All(ctx, r, scanNewRow, query, floor.At, limit)
	if err != nil {
		return n, err // none was seen
	}
	known := map[string]bool{}
	for _, row := range read {
		n.Last = row.id
		if !floor.See(row.id) || !row.waiting {
			continue
		}
		if n.Arrived == 0 {
			n.Arrived = row.receivedAt
		}
		if !known[row.jid] {
			known[row.jid] = true
			n.Chats = append(n.Chats, row.jid)
		}
	}
	floor.Raise(r, n.Last)
	n.More = len(read) >= limit
	return n, nil
}

type newRow struct {
	id, receivedAt int64
	jid            string
	waiting        bool
}

func scanNewRow(scan store.Scan) (row newRow, err error) {
	return row, scan(&row.id, &row.jid, &row.waiting, &row.receivedAt)
}

// UndecidedChats returns every chat with undecided rows.
func UndecidedChats(ctx context.Context, r store.Reader) ([]string, error) {
	// A skip scan: a seek per chat, however many rows of it wait.
	const query = `WITH RECURSIVE waiting(jid) AS (
		SELECT min(chat_jid) FROM messages INDEXED BY messages_undecided WHERE direction = 'in' AND disposition IS NULL
		UNION ALL SELECT (SELECT min(chat_jid) FROM messages INDEXED BY messages_undecided
			WHERE direction = 'in' AND disposition IS NULL AND chat_jid > waiting.jid)
		FROM waiting WHERE waiting.jid IS NOT NULL)
		SELECT jid FROM waiting WHERE jid IS NOT NULL`
	return store.All(ctx, r, store.One[string], query)
}

// PageBytes is the size of the content, in bytes, at which Undecided ends a page.
const PageBytes = 4 << 20

// Moves that have not reached all rows that wait to be decided or delivered.
const movingIn = `SELECT a.new_jid FROM chat_aliases a INDEXED BY chat_aliases_moving WHERE a.moving = 1
		AND EXISTS (SELECT 1 FROM messages o INDEXED BY messages_undecided
			WHERE o.direction = 'in' AND o.disposition IS NULL AND o.chat_jid = a.old_jid)`

// Undecided returns a chat's inbound rows without a disposition after a row id,
// oldest first. It returns at most limit rows, and stops after the row with which
// their content reaches PageBytes.
func Undecided(ctx context.Context, r store.Reader, chatJID string, after int64, limit int) (page []*msg.Message,
	err error) {
	// Rows of a chat's former address are not decided there, and before those of its
	// present one.
	const query = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ?1 AND m.id > ?2
		AND NOT EXISTS (SELECT 1 FROM chat_aliases WHERE old_jid = ?1) AND NOT EXISTS (` + movingIn + ` AND a.new_jid = ?1)
		ORDER BY m.id LIMIT ?3+0`
	size := 0
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		m, err := store.ScanMessage(scan)
		if err != nil {
			return false, err
		}
		page = append(page, m)
		size += len(m.Content)
		return size < PageBytes, nil
	}, query, chatJID, after, limit)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// GroupRows returns the first 256 rows of a chat with a group key, oldest first, decided ones too. Contents
// are cut after 8,192 characters.
func GroupRows(ctx context.Context, r store.Reader, chatJID, key string) ([]*msg.Message, error) {
	// The first of a group: an album has ten, a text of the longest size 256 pieces.
	const query = `SELECT ` + store.FoundColumns + ` FROM messages m INDEXED BY messages_groups
		WHERE m.group_key <> '' AND m.chat_jid = ? AND m.group_key = ? ORDER BY m.id LIMIT 256`
	return r.Messages(ctx, query, chatJID, key)
}

// ObservedQuery is which rows Observed returns.
type ObservedQuery struct {
	Folder         string // the group that they were routed to
	ExceptChat     string
	After, Through int64 // decided after this decision, and up to that one
	Since          int64 // received since then, in unix ms
	Shared         bool  // not those of direct messages
	Limit          int   // the newest ones
}

// directMessages is the condition of a row m of a direct message. A chat that no adapter has described is judged by
// its address, as msg.KindOfJID does.
const directMessages = `ifnull((SELECT c.kind = 'dm' FROM chats c WHERE c.jid = m.chat_jid),
		glob('telegram:[^-]*', m.chat_jid) OR glob('telegram+*:[^-]*', m.chat_jid) OR glob('discord:dm-*', m.chat_jid) OR glob('discord+*:dm-*', m.chat_jid)
		OR glob('slack:D*', m.chat_jid) OR glob('slack+*:D*', m.chat_jid))`

const observedRows = `(SELECT id, decision_seq, chat_jid FROM messages INDEXED BY messages_routed
		WHERE routed_to = ?1 AND decision_seq > ?2 AND decision_seq <= ?6 ORDER BY decision_seq DESC LIMIT 10000) o
		JOIN messages m ON m.id = o.id
		WHERE o.chat_jid <> ?3 AND m.received_at >= ?4 AND m.is_bot_message = 0
		AND (m.content <> '' OR m.attachments IS NOT NULL)
		AND m.disposition IN ('routed', 'observed') AND m.reason <> 'hook_filter' AND m.verb NOT IN ('edit', 'delete')
		AND ` + counts + `
		AND NOT (?5 AND ` + directMessages + `)`

// Observed returns rows of other chats for a folder's prompt, oldest first, without
// empty ones and those of bots, and how many older ones were left out. Only the last
// 10,000 rows that the decisions leave are considered.
func Observed(ctx context.Context, r store.Reader, q ObservedQuery) (rows []*msg.Message, left int, err error) {
	const query = `SELECT ` + store.MessageColumns + ` FROM ` + observedRows +
		` ORDER BY o.decision_seq DESC LIMIT ?7+0`
	args := []any{q.Folder, q.After, q.ExceptChat, q.Since, q.Shared, q.Through}
	rows, err = r.Messages(ctx, query, append(args, q.Limit)...)
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == q.Limit {
		_, err = r.Get(ctx, []any{&left}, `SELECT count(*) FROM `+observedRows, args...)
		left -= len(rows)
	}
	slices.Reverse(rows)
	return rows, left, err
}

// WantFiles asks for the attachments of a row, if any is still to be downloaded,
// and pokes the adapter of its chat.
func WantFiles(tx *store.Tx, id int64) error {
	const query = `UPDATE messages SET files_wanted = 1 WHERE id = ? AND pending_files > 0 AND files_wanted = 0 RETURNING chat_jid`
	var jid string
	found, err := tx.Find([]any{&jid}, query, id)
	if err == nil && found {
		tx.Poke(msg.DaemonOf(jid))
	}
	return err
}

// ReplaceContent applies an edit to an undecided row. It returns ErrStale if the
// row is decided.
func ReplaceContent(tx *store.Tx, id int64, content string, addressed bool, verb string) error {
	const query = `UPDATE messages SET content = ?, addressed = ?, verb = ? WHERE id = ? AND disposition IS NULL`
	tx.Note(failpoint.ChangeContent)
	return change(tx, "edit row", id, query, store.Cut(store.CleanText(content), store.MaxContent), addressed, verb, id)
}

// FiredEdit returns the edit of a message that has started a turn, nil for none.
func FiredEdit(ctx context.Context, r store.Reader, chatJID, targetID string) (*msg.Message, error) {
	const query = `SELECT ` + store.MessageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.disposition = 'routed' AND m.reason = 'edit_addressed' ORDER BY m.id DESC LIMIT 1`
	return store.First(r.Messages(ctx, query, chatJID, targetID))
}

// Deleted reports whether a message was deleted, by a row older than before.
func Deleted(ctx context.Context, r store.Reader, chatJID, targetID string, before int64) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM messages WHERE chat_jid = ? AND target_id = ? AND verb = 'delete' AND direction = 'in' AND id < ?)`
	return store.Value[bool](ctx, r, query, chatJID, targetID, before)
}

// LatestEdit returns the newest edit of a message that was shown, or waits to be, nil for none.
func LatestEdit(ctx context.Context, r store.Reader, chatJID, targetID string) (*msg.Message, error) {
	const query = `SELECT ` + store.MessageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.target_id = ?
		AND m.reason IN ('edit_note', 'edit_superseded', 'edit_addressed') AND m.verb = 'edit' ORDER BY m.id DESC LIMIT 1`
	return store.First(r.Messages(ctx, query, chatJID, targetID))
}

// SaidSince reports whether agents have said something between a row and a later one, in the thread of that, in a web
// chat in its topic. Notices and answers to commands don't count.
func SaidSince(ctx context.Context, r store.Reader, row int64, until *msg.Message) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat WHERE m.chat_jid = ?1 AND m.id > ?2 AND m.id < ?3
		AND m.kind IN ('message', 'file', 'poll') AND m.direction = 'out' AND m.source IN ('agent', 'tool', 'reminder', 'broadcast')
		AND m.out_state NOT IN ('failed', 'cancelled') AND m.thread_id = ?4 AND (m.platform <> 'web' OR m.topic = ?5))`
	return store.Value[bool](ctx, r, query, until.ChatJID, row, until.ID, until.ThreadID,
		msg.Place(until.ThreadID, until.Topic))
}
