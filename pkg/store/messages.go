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
	shortName        = `CASE WHEN octet_length(m.sender_name) <= 1024 THEN m.sender_name ELSE substr(m.sender_name, 1, 256) END`
	shortAttachments = `CASE WHEN octet_length(m.attachments) <= 1048576 THEN m.attachments END`
)

const (
	messageColumns = beforeContent + shortContent + `, ` + shortAttachments + afterContent
	// foundColumns has the beginning of the content, for rows of which a reader shows no more.
	foundColumns = beforeContent +
		`substr(m.content, 1, 8192), CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END` +
		afterContent
)

const beforeContent = `m.id, m.chat_jid, ifnull(m.platform_id,''), m.direction, m.kind, m.sender, ` + shortName + `,
	m.is_bot_message, m.verb, `

const afterContent = `, m.topic, m.thread_id, ifnull(m.reply_to_id,''),
	ifnull(m.target_id,''), m.addressed, m.pending_files, m.timestamp, m.received_at, m.source,
	ifnull(m.derived_from,0), m.forwarded_from, ifnull(m.routed_to,''), ifnull(m.disposition,''),
	ifnull(m.reason,''), ifnull(m.decided_at,0), ifnull(m.decision_seq,0), ifnull(m.turn_id,0), ifnull(m.out_state,''),
	m.files_wanted, m.group_key, ` + shortQuote + `, m.error, m.on_behalf_of`

func scanMessage(scan scanner) (*msg.Message, error) {
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
		m.Content = cleanText(m.Content)
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

func (r Reader) messages(ctx context.Context, query string, args ...any) ([]*msg.Message, error) {
	return collect(ctx, r, scanMessage, query, args...)
}

// Message returns one row by id, nil if there is none.
func (r Reader) Message(ctx context.Context, id int64) (*msg.Message, error) {
	return first(r.messages(ctx, queryMessage, id))
}

// MessageByPlatformID finds a row of a chat by its platform id, or an outbound
// row by the platform id of one of its parts; nil if there is none.
func (r Reader) MessageByPlatformID(ctx context.Context, chatJID, platformID string) (*msg.Message, error) {
	m, err := first(r.messages(ctx, queryByPlatformID, chatJID, platformID))
	if m != nil || err != nil {
		return m, err
	}
	m, err = first(r.messages(ctx, queryByPart, platformID, chatJID))
	if m != nil || err != nil {
		return m, err
	}
	return r.movedMessage(ctx, chatJID, platformID)
}

func first[T any](all []*T, err error) (*T, error) {
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// NewMessages returns the chats of inbound rows after the cursor, each once, in
// order of arrival, and the cursor after the last row read. arrived is when the
// first undecided one of them was received, in unix ms, 0 for none. It reads at
// most limit rows.
func (r Reader) NewMessages(ctx context.Context, cursor int64, limit int) (chats []string, arrived, next int64,
	err error) {
	next = cursor
	seen := map[string]bool{}
	err = r.each(ctx, func(scan scanner) (bool, error) {
		var jid string
		var waiting bool
		var receivedAt int64
		if err := scan(&next, &jid, &waiting, &receivedAt); err != nil {
			return false, err
		}
		if waiting && arrived == 0 {
			arrived = receivedAt
		}
		if waiting && !seen[jid] {
			seen[jid] = true
			chats = append(chats, jid)
		}
		return true, nil
	}, queryNewMessages, cursor, limit)
	if err != nil {
		return nil, 0, cursor, err
	}
	return chats, arrived, next, nil
}

// UndecidedChats returns every chat with undecided rows.
func (r Reader) UndecidedChats(ctx context.Context) ([]string, error) {
	return collect(ctx, r, one[string], queryUndecidedChats)
}

// PageBytes is the size of the content, in bytes, at which Undecided ends a page.
const PageBytes = 4 << 20

// Undecided returns a chat's inbound rows without a disposition after a row id,
// oldest first. It returns at most limit rows, and stops after the row with which
// their content reaches PageBytes.
func (r Reader) Undecided(ctx context.Context, chatJID string, after int64, limit int) (page []*msg.Message,
	err error) {
	size := 0
	err = r.each(ctx, func(scan scanner) (bool, error) {
		m, err := scanMessage(scan)
		if err != nil {
			return false, err
		}
		page = append(page, m)
		size += len(m.Content)
		return size < PageBytes, nil
	}, queryUndecided, chatJID, after, limit)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// LastMessageID is the highest row id, 0 in an empty table.
func (r Reader) LastMessageID(ctx context.Context) (int64, error) {
	return value[int64](ctx, r, queryLastID)
}

// TurnMessages returns the rows of a turn in the order they were written; a
// derived row is sorted as the row it is derived from.
func (r Reader) TurnMessages(ctx context.Context, turnID int64) ([]*msg.Message, error) {
	rows, err := r.messages(ctx, queryTurnMessages, turnID)
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
	return r.messages(ctx, queryTurnReplies, turnID)
}

// DerivedFrom returns the rows derived from a row, oldest first.
func (r Reader) DerivedFrom(ctx context.Context, id int64) ([]*msg.Message, error) {
	return r.messages(ctx, queryDerivedFrom, id)
}

// GroupRows returns the first 256 rows of a chat with a group key, oldest first, decided ones too. Contents
// are cut after 8,192 characters.
func (r Reader) GroupRows(ctx context.Context, chatJID, key string) ([]*msg.Message, error) {
	return r.messages(ctx, queryGroupRows, chatJID, key)
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

// Observed returns rows of other chats for a folder's prompt, oldest first, without
// empty ones and those of bots, and how many older ones were left out. Only the last
// 10,000 rows that the decisions leave are considered.
func (r Reader) Observed(ctx context.Context, q ObservedQuery) (rows []*msg.Message, left int, err error) {
	args := []any{q.Folder, q.After, q.ExceptChat, q.Since, q.Shared, q.Through}
	rows, err = r.messages(ctx, queryObserved, append(args, q.Limit)...)
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == q.Limit {
		_, err = r.get(ctx, []any{&left}, queryObservedCount, args...)
		left -= len(rows)
	}
	slices.Reverse(rows)
	return rows, left, err
}

// LastUser is the newest message of a user among a chat's last 1,000 messages, and its sender; 0 and "" for none. What
// agents inject is none, nor are quoted posts.
func (r Reader) LastUser(ctx context.Context, chatJID string) (id int64, sender string, err error) {
	_, err = r.get(ctx, []any{&id, &sender}, queryLastUser, chatJID)
	return id, sender, err
}

// LastHome is the folder that the newest of a chat's last 1,000 messages was routed
// to by a route, engagement, pin or address, "" for none. The routes may have changed since.
func (r Reader) LastHome(ctx context.Context, chatJID string) (string, error) {
	return value[string](ctx, r, queryLastHome, chatJID)
}

// LastStaleAt is when the last row of a chat arrived that was too old on arrival,
// in unix ms, 0 for never.
func (r Reader) LastStaleAt(ctx context.Context, chatJID string) (int64, error) {
	return value[int64](ctx, r, queryLastStaleAt, chatJID)
}

// BotTurns is the number of turns that another bot's messages in a chat have
// started since a time, in unix ms.
func (r Reader) BotTurns(ctx context.Context, chatJID, sender string, since int64) (int, error) {
	return value[int](ctx, r, queryBotTurns, chatJID, sender, since)
}

// SenderTurn is a turn that took a row of a sender, decided at that time, in unix ms.
type SenderTurn struct {
	Sender   string
	Turn, At int64
}

// FoldersOfSender returns the folders whose turns took a sender's rows of a chat, and
// whether turns took rows of any sender. Only the chat's last 1,000 rows are considered.
func (r Reader) FoldersOfSender(ctx context.Context, chatJID, sender string) (folders []string, used bool, err error) {
	err = r.each(ctx, func(row scanner) (more bool, err error) {
		var own bool
		var folder string
		if err := row(&own, &folder); err != nil {
			return false, err
		}
		if used = true; own {
			folders = append(folders, folder)
		}
		return true, nil
	}, queryFoldersOfSender, chatJID, sender)
	return folders, used, err
}

// PutMessage inserts a row of any kind and pokes the daemon that acts on it. If
// its (chat, platform id) is stored already, nothing changes and the stored row's
// id is returned with fresh false; but for a quoted post, see PutQuoted. Zero fields take the column's default. Texts
// that are too long are cut, with a remark in the content; a message for a former
// address of a chat goes to the present one. m is changed to what is stored.
func (tx *Tx) PutMessage(m *msg.Message) (id int64, fresh bool, err error) {
	tx.note(failpoint.PutMessage)
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
		_, err = tx.find([]any{&m.ID}, queryMessageID, m.ChatJID, m.PlatformID)
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
		m.ChatJID, null(m.PlatformID), m.Direction, m.Kind, m.Sender, m.SenderName, m.IsBot, m.Verb, m.Content,
		attachmentsJSON(m.Attachments), m.Topic, m.ThreadID, null(m.ReplyToID), null(m.TargetID), m.Addressed,
		m.PendingFiles, m.Timestamp, m.ReceivedAt, m.Source, null(m.DerivedFrom), forwardedJSON(m.ForwardedFrom),
		null(m.TurnID), null(m.OutState), m.FilesWanted, m.GroupKey, m.Quote, m.OnBehalfOf})
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

// WantedFiles returns the oldest inbound rows of a platform whose attachments are
// wanted and still to be downloaded, at most limit.
func (r Reader) WantedFiles(ctx context.Context, platform string, limit int) ([]*msg.Message, error) {
	return r.messages(ctx, queryWantedFiles, platform, limit)
}

// WantFiles asks for the attachments of a row, if any is still to be downloaded,
// and pokes the adapter of its chat.
func (tx *Tx) WantFiles(id int64) error {
	var jid string
	found, err := tx.find([]any{&jid}, updateWantFiles, id)
	if err == nil && found {
		tx.Poke(msg.DaemonOf(jid))
	}
	return err
}

// FetchedFiles is PutFiles for a download that began when the row had the attachments of. It returns ErrStale if an
// edit has replaced them since.
func (tx *Tx) FetchedFiles(id int64, of, files []msg.Attachment) error {
	m, err := tx.Message(uncancelled(), id)
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
	n, err := tx.change(updateFiles, attachmentsJSON(cleanAttachments(files)), id)
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
	tx.note(failpoint.Decide)
	seq, err := tx.nextDecision()
	if err != nil {
		return err
	}
	var received int64
	found, err := tx.find([]any{&received}, updateDecide, d.Disposition, d.Reason, null(d.RoutedTo), null(d.TurnID),
		d.Topic, d.ThreadID, d.Error, now, seq, id)
	if err == nil && !found {
		err = fmt.Errorf("decide row %d: %w", id, ErrStale)
	}
	if err == nil && now-received >= msg.AsleepAfter*1000 {
		err = tx.UnmarkMessage(id, now)
	}
	if mark := d.Reason.Shown().Mark; err == nil && mark != "" {
		err = tx.markDecided(id, mark, now)
	}
	return err
}

// ReplaceContent applies an edit to an undecided row. It returns ErrStale if the
// row is decided.
func (tx *Tx) ReplaceContent(id int64, content string, addressed bool, verb string) error {
	tx.note(failpoint.ChangeContent)
	n, err := tx.change(updateContent, cut(cleanText(content), maxContent), addressed, verb, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("edit row %d: %w", id, ErrStale)
	}
	return err
}

// ReplaceFiles replaces the files of an undecided row. The adapter downloads the pending ones once they are wanted. It
// returns ErrStale if the row is decided.
func (tx *Tx) ReplaceFiles(id int64, files []msg.Attachment, pending int) error {
	n, err := tx.change(updateOtherFiles, attachmentsJSON(cleanAttachments(files)), pending, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("replace files of row %d: %w", id, ErrStale)
	}
	if err == nil {
		err = tx.exec(deleteTranscriptsOf, id)
	}
	return err
}

// AttachNotes adds the oldest twenty notes of edits and deletions for a turn's
// group, chat and place to the turn.
func (tx *Tx) AttachNotes(t *msg.Turn) error {
	return tx.exec(updateAttachNotes, t.ID, t.ChatJID, t.Folder, t.ThreadID, t.Place)
}

// SupersedeNotes discards earlier notes about a message that no agent has been
// shown, because a newer one follows.
func (tx *Tx) SupersedeNotes(chatJID, targetID string) error {
	return tx.exec(updateOldNotes, chatJID, targetID)
}

// CancelReplies cancels the replies of a turn that are still queued.
func (tx *Tx) CancelReplies(turnID int64) error {
	return tx.exec(updateCancelReplies, turnID)
}

func (tx *Tx) nextDecision() (int64, error) { return tx.bump(stateDecisionSeq) }

// null turns a zero value into SQL NULL.
func null[T comparable](v T) any {
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

// FiredEdit returns the edit of a message that has started a turn, nil for none.
func (r Reader) FiredEdit(ctx context.Context, chatJID, targetID string) (*msg.Message, error) {
	return first(r.messages(ctx, queryFiredEdit, chatJID, targetID))
}

// Deleted reports whether a message was deleted, by a row older than before.
func (r Reader) Deleted(ctx context.Context, chatJID, targetID string, before int64) (bool, error) {
	return value[bool](ctx, r, queryDeleted, chatJID, targetID, before)
}

// LatestEdit returns the newest edit of a message that was shown, or waits to be, nil for none.
func (r Reader) LatestEdit(ctx context.Context, chatJID, targetID string) (*msg.Message, error) {
	return first(r.messages(ctx, queryLatestEdit, chatJID, targetID))
}
