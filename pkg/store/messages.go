package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Statements are constants so that a test can check the index that each uses.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
const (
	queryByPlatformID = `SELECT ` + MessageColumns + ` FROM messages m WHERE m.chat_jid = ? AND m.platform_id = ?`
	queryMessageID    = `SELECT id FROM messages WHERE chat_jid = ? AND platform_id = ?`
	insertMessage     = `INSERT INTO messages (chat_jid, platform_id, direction, kind, sender, sender_name, is_bot_message,
		verb, content, attachments, topic, thread_id, reply_to_id, target_id, addressed, pending_files, timestamp,
		received_at, source, derived_from, forwarded_from, turn_id, out_state, files_wanted, group_key, quote, on_behalf_of)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (chat_jid, platform_id) WHERE platform_id IS NOT NULL DO NOTHING`
	// See msg.Message.Decorates.
	Decorates = `(m.kind IN ('edit', 'reaction', 'delete') OR m.kind = 'poll' AND m.target_id IS NOT NULL)`
	// Spoken is the condition of the index messages_thread, and asked of messages_chat alone: no votes, reactions,
	// edits, joins. Any number of those leaves the newest rows of a chat as they are.
	Spoken   = `verb IN ('', 'message', 'mention', 'reply') AND kind IN ('message', 'file', 'poll')`
	inChange = `(SELECT c.id FROM messages c INDEXED BY messages_target WHERE c.chat_jid = m.chat_jid AND c.target_id = m.platform_id
		AND c.id <= ?2 AND c.direction = 'in' AND c.verb IN ('edit', 'delete') AND ifnull(c.reason, '') NOT IN ('builtin_drop', 'no_access')
		ORDER BY c.id DESC LIMIT 1)`
	outChange = `(SELECT c.id FROM messages c INDEXED BY messages_derived WHERE c.derived_from = m.id
		AND c.id <= ?2 AND c.direction = 'out' AND c.kind IN ('edit', 'delete') AND ifnull(c.out_state, '') NOT IN ('failed', 'cancelled')
		ORDER BY c.id DESC LIMIT 1)`
	LastChange = `CASE m.direction WHEN 'in' THEN ` + inChange + ` ELSE ` + outChange + ` END`
	// The parked rows of a chat.
	QueryParkedIDs = `SELECT id FROM messages INDEXED BY messages_parked
		WHERE disposition = 'onboarding' AND chat_jid = ? ORDER BY id LIMIT ?+0`
)

// Other programs write these rows too, so readers cap what they load: one row of hundreds
// of megabytes must not stop a reader. 1048576 is MaxContent.
const (
	shortContent = `CASE WHEN octet_length(m.content) <= 1048576 THEN m.content
		ELSE ` + cutContent + " || '\n[cut: the message has ' || octet_length(m.content) || ' bytes]' END"
	cutContent       = `CAST(substr(CAST(m.content AS BLOB), 1, 1048500) AS TEXT)`
	shortQuote       = `CASE WHEN octet_length(m.quote) <= 65536 THEN m.quote ELSE substr(m.quote, 1, 16384) END`
	ShortName        = `CASE WHEN octet_length(m.sender_name) <= 1024 THEN m.sender_name ELSE substr(m.sender_name, 1, 256) END`
	ShortAttachments = `CASE WHEN octet_length(m.attachments) <= 1048576 THEN m.attachments END`
)

const (
	MessageColumns = beforeContent + shortContent + `, ` + ShortAttachments + afterContent
	// FoundColumns has the beginning of the content, for rows that a reader shows no more of.
	FoundColumns = beforeContent +
		`substr(m.content, 1, 8192), CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END` +
		afterContent
)

const beforeContent = `m.id, m.chat_jid, ifnull(m.platform_id,''), m.direction, m.kind, m.sender, ` + ShortName + `,
	m.is_bot_message, m.verb, `

const afterContent = `, m.topic, m.thread_id, ifnull(m.reply_to_id,''),
	ifnull(m.target_id,''), m.addressed, m.pending_files, m.timestamp, m.received_at, m.source,
	ifnull(m.derived_from,0), m.forwarded_from, ifnull(m.routed_to,''), ifnull(m.disposition,''),
	ifnull(m.reason,''), ifnull(m.decided_at,0), ifnull(m.decision_seq,0), ifnull(m.turn_id,0), ifnull(m.out_state,''),
	m.files_wanted, m.group_key, ` + shortQuote + `, m.error, m.on_behalf_of`

// ScanMessage scans MessageColumns or FoundColumns.
func ScanMessage(scan Scan) (*msg.Message, error) {
	var m msg.Message
	var attachments, forwarded sql.NullString
	err := scan(&m.ID, &m.ChatJID, &m.PlatformID, &m.Direction, &m.Kind, &m.Sender, &m.SenderName,
		&m.IsBot, &m.Verb, &m.Content, &attachments, &m.Topic, &m.ThreadID, &m.ReplyToID,
		&m.TargetID, &m.Addressed, &m.PendingFiles, &m.Timestamp, &m.ReceivedAt, &m.Source,
		&m.DerivedFrom, &forwarded, &m.RoutedTo, &m.Disposition,
		&m.Reason, &m.DecidedAt, &m.DecisionSeq, &m.TurnID, &m.OutState,
		&m.FilesWanted, &m.GroupKey, &m.Quote, &m.Error, &m.OnBehalfOf)
	if err != nil {
		return nil, fmt.Errorf("scan message: %w", err)
	}
	if m.Verb == "" {
		m.Verb = msg.VerbMessage
	}
	if len(m.Content) > 1048500 { // cut between the bytes of a character, perhaps
		m.Content = CleanText(m.Content)
	}
	// Foreign adapters write these columns too: JSON of another shape counts as none.
	if attachments.Valid && json.Unmarshal([]byte(attachments.String), &m.Attachments) != nil {
		m.Attachments = nil
	}
	if forwarded.Valid {
		m.ForwardedFrom = new(msg.ReturnAddress)
		if json.Unmarshal([]byte(forwarded.String), m.ForwardedFrom) != nil || m.ForwardedFrom.Kind == "" {
			m.ForwardedFrom = nil
		}
	}
	return &m, nil
}

// Messages runs a query of MessageColumns or FoundColumns.
func (r Reader) Messages(ctx context.Context, query string, args ...any) ([]*msg.Message, error) {
	return All(ctx, r, ScanMessage, query, args...)
}

// SenderName is the name in the newest message of a sender, "" if there is none.
func (r Reader) SenderName(ctx context.Context, sender string) (string, error) {
	const query = `SELECT ` + ShortName + ` FROM messages m INDEXED BY messages_sender
		WHERE m.sender = ? AND m.sender <> '' AND m.direction = 'in' ORDER BY m.id DESC LIMIT 1`
	return Value[string](ctx, r, query, sender)
}

// Message returns one row by id, nil if there is none.
func (r Reader) Message(ctx context.Context, id int64) (*msg.Message, error) {
	return First(r.Messages(ctx, `SELECT `+MessageColumns+` FROM messages m WHERE m.id = ?`, id))
}

// MessageByPlatformID finds a row of a chat by its platform id, or an outbound
// row by the platform id of one of its parts; nil if there is none.
func (r Reader) MessageByPlatformID(ctx context.Context, chatJID, platformID string) (*msg.Message, error) {
	m, err := First(r.Messages(ctx, queryByPlatformID, chatJID, platformID))
	if m != nil || err != nil {
		return m, err
	}
	m, err = First(r.Messages(ctx, `SELECT `+MessageColumns+` FROM deliveries d JOIN messages m ON m.id = d.message_id
		WHERE d.platform_id = ? AND m.chat_jid = ? LIMIT 1`,
		platformID, chatJID))
	if m != nil || err != nil {
		return m, err
	}
	return r.movedMessage(ctx, chatJID, platformID)
}

// First is the first row of a query, nil if there is none.
func First[T any](all []*T, err error) (*T, error) {
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// LastMessageID is the highest row id, 0 in an empty table.
func (r Reader) LastMessageID(ctx context.Context) (int64, error) {
	return Value[int64](ctx, r, `SELECT ifnull(max(id), 0) FROM messages`)
}

// DerivedFrom returns the rows derived from a row, oldest first.
func (r Reader) DerivedFrom(ctx context.Context, id int64) ([]*msg.Message, error) {
	return r.Messages(ctx, `SELECT `+MessageColumns+` FROM messages m WHERE m.derived_from = ? ORDER BY m.id`, id)
}

// LastUser is the newest message of a user among a chat's last 1,000 messages, and its sender; 0 and "" for none.
// Messages that agents inject do not count, nor do quoted posts.
func (r Reader) LastUser(ctx context.Context, chatJID string) (id int64, sender string, err error) {
	_, err = r.Get(ctx, []any{&id, &sender}, `SELECT id, sender FROM (SELECT id, sender, direction, is_bot_message, source, reason FROM messages INDEXED BY messages_chat
		WHERE `+Spoken+` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE direction = 'in' AND is_bot_message = 0 AND source <> 'tool'
		AND ifnull(reason, '') <> 'quoted' LIMIT 1`,
		chatJID)
	return id, sender, err
}

// LastHome is the folder that the newest of a chat's last 1,000 messages was routed
// to by a route, engagement, pin or address, "" for none. The routes may have changed since.
func (r Reader) LastHome(ctx context.Context, chatJID string) (string, error) {
	return Value[string](ctx, r, `SELECT routed_to FROM (SELECT routed_to, reason FROM messages INDEXED BY messages_chat
		WHERE `+Spoken+` AND chat_jid = ? ORDER BY id DESC LIMIT 1000) n WHERE reason IN ('route', 'engaged', 'sticky_target', 'address') LIMIT 1`,
		chatJID)
}

// PutMessage inserts a row of any kind and pokes the daemon that acts on it. If
// its (chat, platform id) is stored already, nothing changes and the stored row's
// id is returned with fresh false; but for a quoted post, see PutQuoted. Zero fields take the column's default. Texts
// that are too long are cut, with a remark in the content; a message for a former
// address of a chat goes to the present one. m is changed to the stored row.
func (tx *Tx) PutMessage(m *msg.Message) (id int64, fresh bool, err error) {
	tx.Note(failpoint.PutMessage)
	if m.Kind == "" {
		m.Kind = msg.KindMessage
	}
	if m.Verb == "" {
		m.Verb = msg.VerbMessage
	}
	clean(m)
	if stored, err := tx.followAliases(m); err != nil || stored != 0 {
		m.ID = stored
		return m.ID, false, err
	}
	if err := tx.Within(m.ChatJID); err != nil {
		return 0, false, err
	}
	if fresh, err = tx.insertMessage(m); err == nil && !fresh {
		fresh, err = tx.insertInPlaceOfQuoted(m)
	}
	if err == nil && !fresh {
		_, err = tx.Find([]any{&m.ID}, queryMessageID, m.ChatJID, m.PlatformID)
	}
	if err != nil {
		return 0, false, err
	}
	if fresh {
		tx.Poke(reader(m))
	}
	return m.ID, fresh, nil
}

// PutNotice stores a message of the gateway to a chat, or to a thread of it.
func (tx *Tx) PutNotice(jid, threadID, text string, now int64) (id int64, err error) {
	id, _, err = tx.PutMessage(&msg.Message{
		ChatJID: jid, Direction: msg.Out, IsBot: true, Content: text, Topic: threadID, ThreadID: threadID,
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, OutState: msg.OutStateOf(jid),
	})
	return id, err
}

// insertMessage inserts a row and sets its id. It reports false if the chat has a row
// with its platform id.
func (tx *Tx) insertMessage(m *msg.Message) (inserted bool, err error) {
	id, inserted, err := tx.q.dialect.insert(tx.q, insertMessage, []any{
		m.ChatJID, Null(m.PlatformID), m.Direction, m.Kind, m.Sender, m.SenderName, m.IsBot, m.Verb, m.Content,
		attachmentsJSON(m.Attachments), m.Topic, m.ThreadID, Null(m.ReplyToID), Null(m.TargetID), m.Addressed,
		m.PendingFiles, m.Timestamp, m.ReceivedAt, m.Source, Null(m.DerivedFrom), forwardedJSON(m.ForwardedFrom),
		Null(m.TurnID), Null(m.OutState), m.FilesWanted, m.GroupKey, m.Quote, m.OnBehalfOf})
	if inserted {
		m.ID = id
	}
	return inserted, err
}

// reader names the daemon that acts on a new row.
func reader(m *msg.Message) string {
	switch {
	case m.Direction == msg.In:
		return "gated"
	case m.OutState == msg.OutQueued:
		return msg.DaemonOf(m.ChatJID)
	}
	return ""
}

// PutFiles records the result of downloading a row's attachments, and pokes gated: the
// row's turn waits for it. It returns ErrStale if a result is recorded already.
func (tx *Tx) PutFiles(id int64, files []msg.Attachment) error {
	n, err := tx.Change(`UPDATE messages SET attachments = ?, pending_files = 0 WHERE id = ? AND pending_files > 0`,
		attachmentsJSON(cleanAttachments(files)), id)
	if err == nil && n == 0 {
		err = fmt.Errorf("files of row %d: %w", id, ErrStale)
	}
	tx.Poke("gated")
	return err
}

// Decision is the result of deciding an inbound row: final, or onboarding.
type Decision struct {
	Disposition msg.Disposition
	Reason      msg.Reason
	RoutedTo    string // the folder that answers or observes the row, "" for none
	TurnID      int64  // the turn it starts, 0 for none
	Topic       string // the row's topic and thread after the decision
	ThreadID    string
	Error       string // why the row could not be handled, "" for none
	ReceivedAt  int64  // of the row, in unix ms, 0 if the caller does not know
}

// Decide sets an undecided row's disposition. The write fails with ErrStale if the row
// has one already, see Expect.
func (tx *Tx) Decide(id int64, d Decision, now int64) error {
	tx.Note(failpoint.Decide)
	err := tx.NumberDecision()
	if err == nil && d.RoutedTo != "" {
		err = tx.Within(d.RoutedTo)
	}
	if err == nil {
		err = tx.Expect(fmt.Errorf("decide row %d: %w", id, ErrStale), `UPDATE messages SET disposition = ?, reason = ?, routed_to = ?, turn_id = ?, topic = ?, thread_id = ?,
		error = ?, decided_at = ?, decision_seq = `+DecisionNumber+` WHERE id = ? AND disposition IS NULL`,
			d.Disposition, d.Reason, Null(d.RoutedTo), Null(d.TurnID), d.Topic, d.ThreadID, d.Error, now, id)
	}
	if err == nil && now-d.ReceivedAt >= msg.AsleepAfter*1000 {
		err = tx.UnmarkMessage(id, now)
	}
	if mark := d.Reason.Shown().Mark; err == nil && mark != "" {
		err = tx.MarkDecided(id, mark, now)
	}
	return err
}

// ReplaceFiles replaces the files of an undecided row. The adapter downloads the pending ones once they are wanted. It
// returns ErrStale if the row is decided.
func (tx *Tx) ReplaceFiles(id int64, files []msg.Attachment, pending int) error {
	n, err := tx.Change(`UPDATE messages SET attachments = ?, pending_files = ?, files_wanted = 0 WHERE id = ? AND disposition IS NULL`,
		attachmentsJSON(cleanAttachments(files)), pending, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("replace files of row %d: %w", id, ErrStale)
	}
	if err == nil {
		err = tx.Exec(`DELETE FROM transcripts WHERE message_id = ?`, id)
	}
	return err
}

// Null turns a zero value into SQL NULL.
func Null[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func attachmentsJSON(all []msg.Attachment) any {
	if len(all) == 0 {
		return nil
	}
	b, _ := json.Marshal(all) // plain strings and numbers: cannot fail
	return string(b)
}

func forwardedJSON(a *msg.ReturnAddress) any {
	if a == nil {
		return nil
	}
	return a.JSON()
}

// insertInPlaceOfQuoted inserts a row if the one with its platform id is that of a quoted post,
// which then is no longer shown.
func (tx *Tx) insertInPlaceOfQuoted(m *msg.Message) (inserted bool, err error) {
	// A row of a quoted post gives its platform id to the post itself.
	n, err := tx.Change(`UPDATE messages SET platform_id = NULL, disposition = 'dropped', reason = 'duplicate'
		WHERE chat_jid = ? AND platform_id = ? AND disposition = 'observed' AND reason = 'quoted'`,
		m.ChatJID, m.PlatformID)
	if err != nil || n == 0 {
		return false, err
	}
	return tx.insertMessage(m)
}

// OrNewest is the id that a page of rows ends before; with 0 there is none.
func OrNewest(position int64) int64 {
	if position <= 0 {
		return math.MaxInt64
	}
	return position
}

// AllChanges is a row id after all edits and deletions.
const AllChanges = math.MaxInt64

// MaxInboundScan bounds how many of the newest rows are read to find inbound ones, for each that is wanted.
const MaxInboundScan = 20
