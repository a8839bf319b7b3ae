package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// MinAuditDays is how long a change is kept at least, if there are not more than that.
	MinAuditDays = 365
)

// PurgeAudit deletes of the oldest changes, as many as limit, those from before a time, in unix ms, and those beyond
// MaxAuditRows.
func PurgeAudit(tx *store.Tx, before int64, limit int) (deleted int, err error) {
	n, err := tx.Change(deleteOldAudit, before, store.MaxAuditRows, limit)
	return int(n), err
}

// DecidedInbound returns inbound messages that were decided at a time, in unix ms, or later, at most the limit, the
// newest first.
func DecidedInbound(ctx context.Context, r store.Reader, since int64, limit int) ([]*msg.Message, error) {
	return r.Messages(ctx, queryDecidedInbound, since, limit, int64(limit)*store.MaxInboundScan)
}

// TableChangedAt is when routes or groups were changed last, in unix ms, as far as the audit tells: it does not have
// changes by SQL. 0 is never.
func TableChangedAt(ctx context.Context, r store.Reader) (at int64, err error) {
	for _, what := range []string{"add route", "change route", "delete route", "reorder routes", "add group",
		"change group", "delete group", store.AuditMove} {
		rows, err := r.Audit(ctx, store.AuditQuery{What: what, Limit: 1})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			at = max(at, row.At)
		}
	}
	return at, nil
}

// ChatKind is the kind of a chat, guessed from its address if it is not stored.
func ChatKind(ctx context.Context, r store.Reader, jid string) (msg.ChatKind, error) {
	chat, err := r.Chat(ctx, jid)
	if err != nil || chat == nil {
		return msg.KindOfJID(jid), err
	}
	return chat.Kind, nil
}

// HasTopLevel reports whether a chat takes messages outside of threads. The forums and media channels of Discord do
// not: every message there is in a post.
func HasTopLevel(ctx context.Context, r store.Reader, jid string) (bool, error) {
	if msg.FamilyOf(jid) != "discord" {
		return true, nil
	}
	var forum bool
	_, err := r.Get(ctx, []any{&forum}, queryIsForum, jid)
	return !forum, err
}

// BindThread binds a platform thread to a named topic.
func BindThread(tx *store.Tx, chatJID, threadID, topic string) error {
	jid, err := tx.Address(store.Uncancelled(), chatJID)
	if err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO topic_threads (chat_jid, thread_id, topic) VALUES (?,?,?)
		ON CONFLICT (chat_jid, thread_id) DO UPDATE SET topic = excluded.topic`, jid, threadID, topic)
}

// PinGroup pins a chat to a group, or clears the pin with "". It ends the
// engagement windows older than at.
func PinGroup(tx *store.Tx, jid, folder string, at int64) error {
	tx.Note(failpoint.Pin)
	jid, err := tx.Address(store.Uncancelled(), jid)
	if err != nil {
		return err
	}
	err = tx.Exec(`UPDATE chats SET sticky_group = ?, sticky_at = ? WHERE jid = ?`, store.Null(folder), at, jid)
	if err == nil {
		tx.Poke("routd")
	}
	return err
}

// PinTopic pins a chat to a topic, or clears the pin with "".
func PinTopic(tx *store.Tx, jid, topic string) error {
	tx.Note(failpoint.Pin)
	jid, err := tx.Address(store.Uncancelled(), jid)
	if err != nil {
		return err
	}
	return tx.Exec(`UPDATE chats SET sticky_topic = ? WHERE jid = ?`, store.Null(topic), jid)
}

// FoldersEver returns the folders of all groups that the rows know of: registered
// ones, and those with sessions or turns, which were removed since. Sorted.
func FoldersEver(ctx context.Context, r store.Reader) ([]string, error) {
	return store.All(ctx, r, func(scan store.Scan) (folder string, err error) {
		err = scan(&folder)
		return folder, err
	}, queryFoldersEver)
}

// NewMessages returns the chats of inbound rows after the cursor, each once, in
// order of arrival, and the cursor after the last row read. arrived is when the
// first undecided one of them was received, in unix ms, 0 for none. It reads at
// most limit rows.
func NewMessages(ctx context.Context, r store.Reader, cursor int64, limit int) (chats []string, arrived, next int64,
	err error) {
	next = cursor
	seen := map[string]bool{}
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
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
func UndecidedChats(ctx context.Context, r store.Reader) ([]string, error) {
	return store.All(ctx, r, store.One[string], queryUndecidedChats)
}

// PageBytes is the size of the content, in bytes, at which Undecided ends a page.
const PageBytes = 4 << 20

// Undecided returns a chat's inbound rows without a disposition after a row id,
// oldest first. It returns at most limit rows, and stops after the row with which
// their content reaches PageBytes.
func Undecided(ctx context.Context, r store.Reader, chatJID string, after int64, limit int) (page []*msg.Message,
	err error) {
	size := 0
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		m, err := store.ScanMessage(scan)
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

// GroupRows returns the first 256 rows of a chat with a group key, oldest first, decided ones too. Contents
// are cut after 8,192 characters.
func GroupRows(ctx context.Context, r store.Reader, chatJID, key string) ([]*msg.Message, error) {
	return r.Messages(ctx, queryGroupRows, chatJID, key)
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
func Observed(ctx context.Context, r store.Reader, q ObservedQuery) (rows []*msg.Message, left int, err error) {
	args := []any{q.Folder, q.After, q.ExceptChat, q.Since, q.Shared, q.Through}
	rows, err = r.Messages(ctx, queryObserved, append(args, q.Limit)...)
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == q.Limit {
		_, err = r.Get(ctx, []any{&left}, queryObservedCount, args...)
		left -= len(rows)
	}
	slices.Reverse(rows)
	return rows, left, err
}

// LastStaleAt is when the last row of a chat arrived that was too old on arrival,
// in unix ms, 0 for never.
func LastStaleAt(ctx context.Context, r store.Reader, chatJID string) (int64, error) {
	return store.Value[int64](ctx, r, queryLastStaleAt, chatJID)
}

// BotTurns is the number of turns that another bot's messages in a chat have
// started since a time, in unix ms.
func BotTurns(ctx context.Context, r store.Reader, chatJID, sender string, since int64) (int, error) {
	return store.Value[int](ctx, r, queryBotTurns, chatJID, sender, since)
}

// SenderTurn is a turn that took a row of a sender, decided at that time, in unix ms.
type SenderTurn struct {
	Sender   string
	Turn, At int64
}

// FoldersOfSender returns the folders whose turns took a sender's rows of a chat, and
// whether turns took rows of any sender. Only the chat's last 1,000 rows are considered.
func FoldersOfSender(ctx context.Context, r store.Reader, chatJID, sender string) (folders []string, used bool,
	err error) {
	err = r.Each(ctx, func(row store.Scan) (more bool, err error) {
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

// WantFiles asks for the attachments of a row, if any is still to be downloaded,
// and pokes the adapter of its chat.
func WantFiles(tx *store.Tx, id int64) error {
	var jid string
	found, err := tx.Find([]any{&jid}, updateWantFiles, id)
	if err == nil && found {
		tx.Poke(msg.DaemonOf(jid))
	}
	return err
}

// ReplaceContent applies an edit to an undecided row. It returns ErrStale if the
// row is decided.
func ReplaceContent(tx *store.Tx, id int64, content string, addressed bool, verb string) error {
	tx.Note(failpoint.ChangeContent)
	n, err := tx.Change(updateContent, store.Cut(store.CleanText(content), store.MaxContent), addressed, verb, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("edit row %d: %w", id, store.ErrStale)
	}
	return err
}

// AttachNotes adds the oldest twenty notes of edits and deletions for a turn's
// group, chat and place to the turn.
func AttachNotes(tx *store.Tx, t *msg.Turn) error {
	return tx.Exec(updateAttachNotes, t.ID, t.ChatJID, t.Folder, t.ThreadID, t.Place)
}

// SupersedeNotes discards earlier notes about a message that no agent has been
// shown, because a newer one follows.
func SupersedeNotes(tx *store.Tx, chatJID, targetID string) error {
	return tx.Exec(updateOldNotes, chatJID, targetID)
}

// CancelReplies cancels the replies of a turn that are still queued.
func CancelReplies(tx *store.Tx, turnID int64) error {
	return tx.Exec(updateCancelReplies, turnID)
}

// FiredEdit returns the edit of a message that has started a turn, nil for none.
func FiredEdit(ctx context.Context, r store.Reader, chatJID, targetID string) (*msg.Message, error) {
	return store.First(r.Messages(ctx, queryFiredEdit, chatJID, targetID))
}

// Deleted reports whether a message was deleted, by a row older than before.
func Deleted(ctx context.Context, r store.Reader, chatJID, targetID string, before int64) (bool, error) {
	return store.Value[bool](ctx, r, queryDeleted, chatJID, targetID, before)
}

// LatestEdit returns the newest edit of a message that was shown, or waits to be, nil for none.
func LatestEdit(ctx context.Context, r store.Reader, chatJID, targetID string) (*msg.Message, error) {
	return store.First(r.Messages(ctx, queryLatestEdit, chatJID, targetID))
}

// Keys of gated's cursors about operators who became ones by a code. The values are JSON.
const (
	operatorCode = "operator code" // the code that is open
)

// What the audit calls it.
const (
	AuditOperatorCode   = "new operator code"
	AuditAddOperator    = "add operator"
	AuditRemoveOperator = "remove operator"
)

// OperatorCode is the code that is open. The code itself is not stored.
type OperatorCode struct {
	Hash      string         `json:"hash"`
	By        string         `json:"by"`         // who made it
	ExpiresAt int64          `json:"expires_at"` // unix ms
	Tries     map[string]int `json:"tries"`      // wrong codes, by sender
}

// Tried is how many wrong codes were written.
func (c *OperatorCode) Tried() (n int) {
	for tries := range maps.Values(c.Tries) {
		n += tries
	}
	return n
}

// FindOperatorCode returns the code that is open, which may have expired; nil if there is none.
func FindOperatorCode(ctx context.Context, r store.Reader) (*OperatorCode, error) {
	value, err := r.DaemonCursor(ctx, store.OperatorsDaemon, operatorCode)
	code := &OperatorCode{}
	if err != nil || value == "" || json.Unmarshal([]byte(value), code) != nil {
		return nil, err
	}
	return code, nil
}

// PutOperatorCode stores a code in place of the one before.
func PutOperatorCode(tx *store.Tx, code *OperatorCode, now int64) error {
	if err := putJSONCursor(tx, operatorCode, code); err != nil {
		return err
	}
	return tx.PutAudit(code.By, AuditOperatorCode, "", now)
}

// putJSONCursor stores a value of gated's as JSON.
func putJSONCursor(tx *store.Tx, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.PutCursor(store.OperatorsDaemon, key, string(text))
}

// NoteWrongOperatorCode counts a wrong code against the one that is open, which ends once limit of them were written.
func NoteWrongOperatorCode(tx *store.Tx, sender string, limit int) error {
	code, err := FindOperatorCode(store.Uncancelled(), tx.Reader)
	if err != nil || code == nil {
		return err
	}
	if code.Tried()+1 >= limit {
		return EndOperatorCode(tx)
	}
	if code.Tries == nil {
		code.Tries = map[string]int{}
	}
	code.Tries[sender]++
	return putJSONCursor(tx, operatorCode, code)
}

// EndOperatorCode makes the code that is open worthless.
func EndOperatorCode(tx *store.Tx) error { return tx.DeleteCursor(store.OperatorsDaemon, operatorCode) }

// AddOperator makes a sender an operator by the code with a hash, which ends. It returns ErrStale unless that one is
// open.
func AddOperator(tx *store.Tx, sender, hash string, now int64) error {
	code, err := FindOperatorCode(store.Uncancelled(), tx.Reader)
	if err != nil {
		return err
	}
	if code == nil || code.Hash != hash || now >= code.ExpiresAt {
		return fmt.Errorf("operator %s: the code is not open: %w", sender, store.ErrStale)
	}
	if err := EndOperatorCode(tx); err != nil {
		return err
	}
	if err := putJSONCursor(tx, store.OperatorPrefix+sender, store.MadeOperator{At: now, By: code.By}); err != nil {
		return err
	}
	if err := operatorMayAnswer(tx, sender, true); err != nil {
		return err
	}
	return tx.PutAudit(sender, AuditAddOperator, "with the code of "+code.By, now)
}

// RemoveOperator makes a sender an operator no more who became one by a code. It returns ErrStale if they are none.
func RemoveOperator(tx *store.Tx, sender, by string, now int64) error {
	value, err := tx.DaemonCursor(store.Uncancelled(), store.OperatorsDaemon, store.OperatorPrefix+sender)
	if err != nil {
		return err
	}
	if value == "" {
		return fmt.Errorf("operator %s: %w", sender, store.ErrStale)
	}
	if err := tx.DeleteCursor(store.OperatorsDaemon, store.OperatorPrefix+sender); err != nil {
		return err
	}
	if err := operatorMayAnswer(tx, sender, false); err != nil {
		return err
	}
	return tx.PutAudit(by, AuditRemoveOperator, sender, now)
}

// operatorMayAnswer adds a sender to those who may answer the open questions to operators of their platform, or removes
// them from these: who may answer was resolved when the question was asked.
func operatorMayAnswer(tx *store.Tx, sender string, may bool) error {
	asks, err := tx.ReadAsks(store.Uncancelled(), queryOpenAsks)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if a.Who.Everyone || a.Who.Label != msg.WhoOperators && a.Who.Label != msg.WhoApprovers ||
			may == a.Who.May(sender) {
			continue
		}
		row, err := tx.Message(store.Uncancelled(), a.MessageID)
		if err != nil {
			return err
		}
		if row == nil || msg.FamilyOf(row.ChatJID) != msg.FamilyOf(sender) {
			continue
		}
		if may {
			a.Who.Senders = append(a.Who.Senders, sender)
		} else {
			a.Who.Senders = slices.DeleteFunc(a.Who.Senders, func(s string) bool { return s == sender })
		}
		if _, err := tx.Change(updateAskWho, a.Who.JSON(), a.ID); err != nil {
			return err
		}
	}
	return nil
}

// ParkedChat is a chat with parked rows: those that wait for an approval.
type ParkedChat struct {
	JID     string
	Pending bool // an operator has still to decide its request
}

// ParkedChats returns every chat with parked rows.
func ParkedChats(ctx context.Context, r store.Reader) ([]ParkedChat, error) {
	return store.All(ctx, r, func(scan store.Scan) (c ParkedChat, err error) {
		err = scan(&c.JID, &c.Pending)
		return c, err
	}, queryParkedChats)
}

// Parked returns a chat's parked rows, oldest first, at most limit, with what a route
// matches and no content.
func Parked(ctx context.Context, r store.Reader, chatJID string, limit int) ([]*msg.Message, error) {
	return store.All(ctx, r, func(scan store.Scan) (*msg.Message, error) {
		m := &msg.Message{ChatJID: chatJID, Direction: msg.In, Disposition: msg.Onboarding}
		err := scan(&m.ID, &m.PlatformID, &m.Sender, &m.SenderName, &m.IsBot, &m.Verb, &m.Topic, &m.ThreadID,
			&m.Addressed, &m.ReceivedAt)
		if m.Verb == "" {
			m.Verb = msg.VerbMessage
		}
		return m, err
	}, queryParked, chatJID, limit)
}

// TakeUp makes the parked rows of a chat undecided again. Their ids keep their order.
func TakeUp(tx *store.Tx, chatJID string, now int64) error {
	tx.Note(failpoint.TakeUp)
	ids, err := store.All(store.Uncancelled(), tx.Reader, store.One[int64], store.QueryParkedIDs, chatJID,
		math.MaxInt64)
	for _, id := range ids {
		if err == nil {
			err = tx.UnmarkMessage(id, now)
		}
	}
	if err == nil {
		err = tx.Exec(updateTakeUp, chatJID)
	}
	return err
}

// TakeUpRow makes one parked row undecided again. It returns ErrStale if the row is not
// parked.
func TakeUpRow(tx *store.Tx, id int64) error {
	tx.Note(failpoint.TakeUp)
	n, err := tx.Change(updateTakeUpRow, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("take up row %d: %w", id, store.ErrStale)
	}
	return err
}

// DropParked drops the parked rows of a chat.
func DropParked(tx *store.Tx, chatJID string, reason msg.Reason, now int64) error {
	tx.Note(failpoint.Decide)
	ids, err := store.All(store.Uncancelled(), tx.Reader, store.One[int64], store.QueryParkedIDs, chatJID,
		math.MaxInt64)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := dropParked(tx, id, reason, now); err != nil {
			return err
		}
	}
	return nil
}

func dropParked(tx *store.Tx, id int64, reason msg.Reason, now int64) error {
	seq, err := tx.NextDecision()
	if err != nil {
		return err
	}
	if err = tx.Exec(updateDropParked, reason, now, seq, id); err != nil {
		return err
	}
	if err := tx.UnmarkMessage(id, now); err != nil {
		return err
	}
	return tx.MarkDecided(id, reason.Shown().Mark, now)
}

// StopParked drops the parked rows of a thread of a chat below before, those of one sender or, with nil, of all.
func StopParked(tx *store.Tx, chatJID, thread string, sender *string, before, now int64) error {
	chats, err := stoppedChats(tx, Stop{ChatJID: chatJID})
	if err != nil {
		return err
	}
	for _, jid := range chats {
		rows, err := Parked(store.Uncancelled(), tx.Reader, jid, math.MaxInt64)
		if err != nil {
			return err
		}
		for _, m := range rows {
			if m.ID >= before || m.ThreadID != thread || sender != nil && m.Sender != *sender {
				continue
			}
			if err := dropParked(tx, m.ID, msg.ReasonStopped, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// RecentTurns returns the rows that turns of a folder took since a time with the senders who pay for them, in unix ms,
// oldest first. Only the folder's last 100,000 rows are considered.
func RecentTurns(ctx context.Context, r store.Reader, folder string, since int64) (all []SenderTurn, err error) {
	err = r.Each(ctx, func(row store.Scan) (more bool, err error) {
		var t SenderTurn
		var counts bool
		if err := row(&t.Sender, &t.Turn, &t.At, &counts); err != nil || t.At <= since {
			return false, err
		}
		if counts && t.Turn != 0 {
			all = append(all, t)
		}
		return true, nil
	}, queryRecentTurns, folder)
	slices.Reverse(all)
	return all, err
}

// PaidTurns returns how many turns of a folder a sender has caused since a time, in unix ms, and when the first of the
// last rate ones was decided, 0 if there are fewer.
func PaidTurns(ctx context.Context, r store.Reader, folder, payer string, since int64, rate int) (n int, first int64,
	err error) {
	all, err := RecentTurns(ctx, r, folder, since)
	last := map[int64]int64{} // the last row of each turn counts
	for _, t := range all {
		if t.Sender == payer {
			last[t.Turn] = t.At
		}
	}
	if at := slices.Sorted(maps.Values(last)); rate > 0 && len(at) >= rate {
		first = at[len(at)-rate]
	}
	return len(last), first, err
}

// LastRateLimit is when a message of a sender was last dropped for the rate of a group,
// in unix ms, 0 for never. Only the chat's last 1,000 rows are considered.
func LastRateLimit(ctx context.Context, r store.Reader, chatJID, sender string) (int64, error) {
	return store.Value[int64](ctx, r, queryLastRateLimit, chatJID, sender)
}

// CommandsOf returns when a sender's commands and pins of a chat arrived that were answered, and when the last one did
// that was dropped since there were too many, in unix ms, 0 for never. Only the chat's last 1,000 rows are considered.
func CommandsOf(ctx context.Context, r store.Reader, chatJID, sender string) (answered []int64, dropped int64,
	err error) {
	err = r.Each(ctx, func(row store.Scan) (more bool, err error) {
		var at int64
		var tooMany bool
		if err := row(&at, &tooMany); err != nil {
			return false, err
		}
		if tooMany {
			dropped = max(dropped, at)
		} else {
			answered = append(answered, at)
		}
		return true, nil
	}, queryCommandsOf, chatJID, sender)
	return answered, dropped, err
}

// History is a table that grows, and whose old rows can be deleted.
type History string

// The kinds of history. What belongs to a row goes with it: the tool calls, questions, progress and previews of a turn,
// the deliveries, transcripts, forks, closed polls with their votes and reminder slots of a message, the session log of
// a run.
const (
	HistoryTurns    History = "turns"
	HistoryMessages History = "messages"
	HistoryRuns     History = "runs"

	HistoryBroadcasts History = "broadcasts"
)

// purgeQueries are the statements for one kind of history.
type purgeQueries struct {
	page    string
	isOld   string
	deletes []string // the row itself last
}

func (h History) queries() purgeQueries {
	switch h {
	case HistoryTurns:
		return purgeQueries{queryTurnsPage, queryTurnIsOld,
			[]string{deleteToolCalls, deleteTurnProgress, deletePreviews, deleteAsks, deleteTurn}}
	case HistoryMessages:
		return purgeQueries{queryMessagesPage, queryMessageIsOld,
			[]string{deleteDeliveries, deleteTranscripts, deleteForks, deletePollVotes, deletePollRefs, deletePolls,
				deleteSlots, updateLastSlot, deleteMessage}}
	case HistoryRuns:
		return purgeQueries{queryRunsPage, queryRunIsOld, []string{deleteRunLog, deleteRun}}
	case HistoryBroadcasts:
		return purgeQueries{queryBroadcastsPage, queryBroadcastIsOld, []string{deleteBroadcast}}
	}
	panic("unknown history " + string(h))
}

// OldRows reads limit rows after an id and returns those that are older than the
// time before, in unix ms, and the id to continue after. It returns none at the end,
// which is where no row of a page is old.
func OldRows(ctx context.Context, r store.Reader, h History, after, before int64, limit int) (ids []int64, next int64,
	err error) {
	next = after
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var old bool
		err := scan(&next, &old)
		if old {
			ids = append(ids, next)
		}
		return true, err
	}, h.queries().page, after, before, limit)
	return ids, next, err
}

// Purge deletes those of the rows that are older than the time before, in unix ms,
// and returns how many. It leaves a row that waits for something, or that a row which
// is left needs.
func Purge(tx *store.Tx, h History, ids []int64, before int64) (deleted int, err error) {
	q := h.queries()
	for _, id := range ids {
		var old bool
		if _, err := tx.Find([]any{&old}, q.isOld, id, before); err != nil {
			return deleted, fmt.Errorf("purge %s %d: %w", h, id, err)
		}
		if !old {
			continue
		}
		for _, query := range q.deletes {
			if err := tx.Exec(query, id); err != nil {
				return deleted, fmt.Errorf("purge %s %d: %w", h, id, err)
			}
		}
		deleted++
	}
	return deleted, nil
}

// RunExists reports whether a run is stored.
func RunExists(ctx context.Context, r store.Reader, id int64) (bool, error) {
	return store.Value[bool](ctx, r, queryRunExists, id)
}

// Keys of router_state.
const (
	stateCursor    = "cursor"
	stateAnnounced = "announced_schema"
)

// Cursor is the id of the last row that gated has read. It is a hint: undecided
// rows are found without it.
func Cursor(ctx context.Context, r store.Reader) (int64, error) { return r.State(ctx, stateCursor) }

// SetCursor stores the cursor.
func SetCursor(tx *store.Tx, id int64) error {
	return tx.Exec(putState, stateCursor, id)
}

// SetDemoAgent stores that.
func SetDemoAgent(tx *store.Tx, demo bool) error {
	value := 0
	if demo {
		value = 1
	}
	return tx.Exec(putState, store.StateDemoAgent, value)
}
