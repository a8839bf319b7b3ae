package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// What programs of others stored is bounded where it is read: one row of hundreds
// of megabytes must not stop a reader. 1048576 is maxContent.
const (
	shortContent = `CASE WHEN octet_length(m.content) <= 1048576 THEN m.content
		ELSE ` + cutContent + " || '\n[cut: the message has ' || octet_length(m.content) || ' bytes]' END"
	cutContent       = `CAST(substr(CAST(m.content AS BLOB), 1, 1048500) AS TEXT)`
	shortQuote       = `CASE WHEN octet_length(m.quote) <= 65536 THEN m.quote ELSE substr(m.quote, 1, 16384) END`
	ShortName        = `CASE WHEN octet_length(m.sender_name) <= 1024 THEN m.sender_name ELSE substr(m.sender_name, 1, 256) END`
	shortAttachments = `CASE WHEN octet_length(m.attachments) <= 1048576 THEN m.attachments END`
)

const (
	MessageColumns = beforeContent + shortContent + `, ` + shortAttachments + afterContent
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

func (r Reader) Messages(ctx context.Context, query string, args ...any) ([]*msg.Message, error) {
	return All(ctx, r, ScanMessage, query, args...)
}

// Message returns one row by id, nil if there is none.
func (r Reader) Message(ctx context.Context, id int64) (*msg.Message, error) {
	return First(r.Messages(ctx, queryMessage, id))
}

// MessageByPlatformID finds a row of a chat by its platform id, or an outbound
// row by the platform id of one of its parts; nil if there is none.
func (r Reader) MessageByPlatformID(ctx context.Context, chatJID, platformID string) (*msg.Message, error) {
	m, err := First(r.Messages(ctx, queryByPlatformID, chatJID, platformID))
	if m != nil || err != nil {
		return m, err
	}
	m, err = First(r.Messages(ctx, queryByPart, platformID, chatJID))
	if m != nil || err != nil {
		return m, err
	}
	return r.movedMessage(ctx, chatJID, platformID)
}

func First[T any](all []*T, err error) (*T, error) {
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// LastMessageID is the highest row id, 0 in an empty table.
func (r Reader) LastMessageID(ctx context.Context) (int64, error) {
	return Value[int64](ctx, r, queryLastID)
}

// TurnMessages returns the rows of a turn in the order they were written; a
// derived row is sorted as the row it is derived from.
func (r Reader) TurnMessages(ctx context.Context, turnID int64) ([]*msg.Message, error) {
	rows, err := r.Messages(ctx, queryTurnMessages, turnID)
	written := func(m *msg.Message) int64 {
		if m.Source == msg.SourcePrefix || m.Source == msg.SourceCommand {
			return m.DerivedFrom
		}
		return m.ID
	}
	slices.SortStableFunc(rows, func(a, b *msg.Message) int { return cmp.Compare(written(a), written(b)) })
	return rows, err
}

// TurnReplies returns the outbound rows of a turn, oldest first.
func (r Reader) TurnReplies(ctx context.Context, turnID int64) ([]*msg.Message, error) {
	return r.Messages(ctx, queryTurnReplies, turnID)
}

// DerivedFrom returns the rows derived from a row, oldest first.
func (r Reader) DerivedFrom(ctx context.Context, id int64) ([]*msg.Message, error) {
	return r.Messages(ctx, queryDerivedFrom, id)
}

// LastUser is the newest message of a user among a chat's last 1,000 messages, and its sender; 0 and "" for none. What
// agents inject is none, nor are quoted posts.
func (r Reader) LastUser(ctx context.Context, chatJID string) (id int64, sender string, err error) {
	_, err = r.Get(ctx, []any{&id, &sender}, queryLastUser, chatJID)
	return id, sender, err
}

// LastHome is the folder that the newest of a chat's last 1,000 messages was routed
// to by a route, engagement, pin or address, "" for none. The routes may have changed since.
func (r Reader) LastHome(ctx context.Context, chatJID string) (string, error) {
	return Value[string](ctx, r, queryLastHome, chatJID)
}

// PutMessage inserts a row of any kind and pokes the daemon that acts on it. If
// its (chat, platform id) is stored already, nothing changes and the stored row's
// id is returned with fresh false; but for a quoted post, see PutQuoted. Zero fields take the column's default. Texts
// that are too long are cut, with a remark in the content; a message for a former
// address of a chat goes to the present one. m is changed to what is stored.
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

// FetchedFiles is PutFiles for a download that began when the row had the attachments of. It returns ErrStale if an
// edit has replaced them since.
func (tx *Tx) FetchedFiles(id int64, of, files []msg.Attachment) error {
	m, err := tx.Message(Uncancelled(), id)
	if err != nil {
		return err
	}
	same := func(a, b msg.Attachment) bool { return a.Ref == b.Ref }
	if m != nil && !slices.EqualFunc(m.Attachments, of, same) {
		return fmt.Errorf("files of row %d were replaced: %w", id, ErrStale)
	}
	return tx.PutFiles(id, files)
}

// PutFiles records the result of downloading a row's attachments, and pokes gated: the
// row's turn waits for it. It returns ErrStale if a result is recorded already.
func (tx *Tx) PutFiles(id int64, files []msg.Attachment) error {
	n, err := tx.Change(updateFiles, attachmentsJSON(cleanAttachments(files)), id)
	if err == nil && n == 0 {
		err = fmt.Errorf("files of row %d: %w", id, ErrStale)
	}
	tx.Poke("gated")
	return err
}

// PutMessage inserts one row in a separate write, see Tx.PutMessage.
func (s *Store) PutMessage(ctx context.Context, m *msg.Message) (id int64, fresh bool, err error) {
	err = s.Write(ctx, func(tx *Tx) (err error) {
		id, fresh, err = tx.PutMessage(m)
		return err
	})
	return id, fresh, err
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
}

// Decide sets an undecided row's disposition. It returns ErrStale if the row has
// one already.
func (tx *Tx) Decide(id int64, d Decision, now int64) error {
	tx.Note(failpoint.Decide)
	seq, err := tx.NextDecision()
	if err != nil {
		return err
	}
	var received int64
	found, err := tx.Find([]any{&received}, updateDecide, d.Disposition, d.Reason, Null(d.RoutedTo), Null(d.TurnID),
		d.Topic, d.ThreadID, d.Error, now, seq, id)
	if err == nil && !found {
		err = fmt.Errorf("decide row %d: %w", id, ErrStale)
	}
	if err == nil && now-received >= msg.AsleepAfter*1000 {
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
	n, err := tx.Change(updateOtherFiles, attachmentsJSON(cleanAttachments(files)), pending, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("replace files of row %d: %w", id, ErrStale)
	}
	if err == nil {
		err = tx.Exec(deleteTranscriptsOf, id)
	}
	return err
}

func (tx *Tx) NextDecision() (int64, error) { return tx.bump(StateDecisionSeq) }

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
