// Package rows has the statements that adapters alone need: the outbox, previews, polls and the posts of a chat.
//
// If a parameter alone is a LIMIT, or is compared with a column in a partial
// index's condition, SQLite plans the statement again at every call. Hence ?+0,
// a concatenation with an empty text, or a literal.
package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxCopies is how many further messages of a question lose their buttons: resends leave no more.
const maxCopies = 3

// EndCopy queues the edit that takes the buttons of an ended question away from another message that shows it, by its
// platform id: a crash left it before its id was stored. The next calls for that message do nothing.
func EndCopy(tx *store.Tx, a *msg.Ask, platformID string, now int64) error {
	changes, err := tx.DerivedFrom(store.Uncancelled(), a.MessageID)
	if err != nil {
		return err
	}
	var edit *msg.Message
	copies := 0
	for _, c := range changes {
		switch {
		case c.Kind != msg.KindEdit || c.Source != msg.SourceNotice:
		case c.TargetID == "":
			edit = c
		case c.TargetID == platformID:
			return nil
		default:
			copies++
		}
	}
	if edit == nil || copies == maxCopies {
		return nil
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: edit.ChatJID, Direction: msg.Out, Kind: msg.KindEdit, IsBot: true, Sender: edit.Sender,
		SenderName: edit.SenderName, Content: edit.Content, DerivedFrom: a.MessageID, TargetID: platformID,
		Topic: edit.Topic, ThreadID: edit.ThreadID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
		OutState: msg.OutStateOf(edit.ChatJID),
	})
	return err
}

// Thread returns a thread's row, nil if there is none.
func Thread(ctx context.Context, r store.Reader, chatJID, id string) (*msg.Thread, error) {
	t := msg.Thread{ChatJID: chatJID, ID: id}
	found, err := r.Get(ctx, []any{&t.Kind, &t.Title, &t.Author},
		`SELECT kind, title, parent_author FROM platform_threads WHERE chat_jid = ? AND thread_id = ?`, chatJID, id)
	if err != nil || !found {
		return nil, err
	}
	return &t, nil
}

// RecentThreads lists the threads of a chat whose newest message was stored since a time, in unix ms, the
// one with the oldest such message first.
func RecentThreads(ctx context.Context, r store.Reader, chatJID string, since int64) ([]string, error) {
	return store.All(ctx, r, store.One[string],
		// The newest row of each thread of a chat, and of these the ones since a time.
		`SELECT m.thread_id FROM (
			SELECT max(id) AS newest FROM messages INDEXED BY messages_thread
			WHERE thread_id <> '' AND `+store.Spoken+` AND chat_jid = ?1 GROUP BY thread_id
		) t JOIN messages m ON m.id = t.newest WHERE m.received_at >= ?2 ORDER BY m.id`, chatJID, since)
}

// AbandonFork ends a fork whose own thread cannot be opened, if it is open. The group's next prompt says so; what is a
// sentence of it, on the message for that thread.
func AbandonFork(tx *store.Tx, fork *msg.Fork, what string, now int64) error {
	if fork.EndedAt != 0 {
		return nil
	}
	if err := tx.EndFork(fork.ChatJID, fork.Topic, now); err != nil {
		return err
	}
	body := fmt.Sprintf("The fork %s of chat %s is over: its thread could not be opened. "+
		"%s Correct the answer in topic %q.", fork.Topic, fork.ChatJID, what, fork.Parent())
	return tx.PutSystemMessage(fork.Folder, "gated", "fork_failed", body, now)
}

// scanThread reads a thread of a chat as its lane of answers.
func scanThread(scan store.Scan) (l store.Lane, err error) {
	err = scan(&l.ChatJID, &l.ThreadID)
	return l, err
}

func scanLane(scan store.Scan) (l store.Lane, err error) {
	err = scan(&l.ChatJID, &l.ThreadID, &l.Decorations)
	return l, err
}

// movingOut selects where chats are being moved that have rows to deliver under their old address.
const movingOut = `SELECT a.new_jid FROM chat_aliases a INDEXED BY chat_aliases_moving WHERE a.moving = 1
	AND EXISTS (SELECT 1 FROM messages o INDEXED BY messages_outbox WHERE o.out_state IN ('queued', 'sending')
		AND o.platform = substr(a.old_jid, 1, instr(a.old_jid, ':') - 1) AND o.chat_jid = a.old_jid)`

// OutboxLanes lists the threads of a platform with outbound rows to deliver, each as a lane of answers.
func OutboxLanes(ctx context.Context, r store.Reader, platform string) ([]store.Lane, error) {
	// A skip scan: a seek per lane, however many rows of it wait.
	lanes, err := store.All(ctx, r, scanThread, `WITH RECURSIVE head(id) AS (
		SELECT (SELECT id FROM messages INDEXED BY messages_outbox
			WHERE out_state IN ('queued', 'sending') AND platform = ?1||'' ORDER BY chat_jid, thread_id LIMIT 1)
		UNION ALL SELECT (SELECT n.id FROM messages n INDEXED BY messages_outbox
			WHERE n.out_state IN ('queued', 'sending') AND n.platform = ?1||''
			AND (n.chat_jid, n.thread_id) > (m.chat_jid||'', m.thread_id||'') ORDER BY n.chat_jid, n.thread_id LIMIT 1)
		FROM head JOIN messages m ON m.id = head.id)
		SELECT m.chat_jid, m.thread_id FROM head JOIN messages m ON m.id = head.id`, platform)
	if err != nil {
		return nil, err
	}
	moving, err := store.All(ctx, r, store.One[string], `SELECT old_jid FROM chat_aliases UNION ALL `+movingOut)
	if len(moving) > 0 {
		lanes = slices.DeleteFunc(lanes, func(l store.Lane) bool { return slices.Contains(moving, l.ChatJID) })
	}
	return lanes, err
}

// NewOutbound lists the lanes of a platform with outbound rows to deliver among the
// rows after the floor, which it raises.
func NewOutbound(ctx context.Context, r store.Reader, platform string, floor *store.Floor) (lanes []store.Lane,
	err error) {
	if err := floor.Ask(ctx, r); err != nil {
		return nil, err
	}
	last, err := r.LastMessageID(ctx)
	if err != nil || last <= floor.At {
		return nil, err
	}
	lanes, err = store.All(ctx, r, scanLane,
		`SELECT DISTINCT chat_jid, thread_id, `+store.Decorates+` FROM messages m NOT INDEXED
		WHERE id > ? AND id <= ? AND out_state IN ('queued', 'sending') AND platform = ?||''`, floor.At, last, platform)
	if err == nil {
		floor.Raise(r, last)
	}
	return lanes, err
}

// OldOutbound lists the lanes of a platform with outbound rows to deliver that were received before a time, in
// unix ms.
func OldOutbound(ctx context.Context, r store.Reader, platform string, before int64) ([]store.Lane, error) {
	return store.All(ctx, r, scanLane,
		`SELECT DISTINCT chat_jid, thread_id, `+store.Decorates+` FROM messages m INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?||'' AND received_at < ?+0`, platform, before)
}

// ActiveLanes lists the lanes of a platform that have a running turn.
func ActiveLanes(ctx context.Context, r store.Reader, platform string) ([]store.Lane, error) {
	return store.All(ctx, r, scanThread, `SELECT DISTINCT chat_jid, thread_id FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND chat_jid >= ? AND chat_jid < ?`, platform+":", platform+";") // "irc:room", not "ircs:room"
}

// ActiveTriggers lists the platform ids of the messages that started a lane's running turns.
func ActiveTriggers(ctx context.Context, r store.Reader, l store.Lane) ([]string, error) {
	return store.All(ctx, r, store.One[string],
		`SELECT ifnull(m.platform_id, o.platform_id) FROM turns t INDEXED BY turns_run
		JOIN messages m ON m.id = t.trigger_message_id LEFT JOIN messages o ON o.id = m.derived_from
		WHERE t.state = 'running' AND t.chat_jid = ? AND t.thread_id = ?
		AND ifnull(m.platform_id, o.platform_id) IS NOT NULL`, l.ChatJID, l.ThreadID)
}

// nextOutbound selects the rows to deliver of a lane whose chat is not being moved.
const nextOutbound = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_outbox
	WHERE m.out_state IN ('queued', 'sending') AND m.platform = ?1||'' AND m.chat_jid = ?2 AND m.thread_id = ?3
	AND NOT EXISTS (SELECT 1 FROM chat_aliases WHERE old_jid = ?2) AND NOT EXISTS (` + movingOut + ` AND a.new_jid = ?2)`

// NextOutbound is the oldest queued or sending row of a lane, nil if there is none. Decorations of messages that are
// still being delivered come after all others.
func NextOutbound(ctx context.Context, r store.Reader, l store.Lane) (*msg.Message, error) {
	platform, _ := msg.SplitJID(l.ChatJID)
	if !l.Decorations {
		return store.First(r.Messages(ctx, nextOutbound+` AND NOT `+store.Decorates+` ORDER BY m.id LIMIT 1`,
			platform, l.ChatJID, l.ThreadID))
	}
	return store.First(r.Messages(ctx, nextOutbound+` AND `+store.Decorates+` ORDER BY EXISTS (SELECT 1 FROM messages t
		WHERE t.id = m.derived_from AND t.out_state IN ('queued', 'sending')), m.id LIMIT 1`,
		platform, l.ChatJID, l.ThreadID))
}

// Superseded reports whether a newer row that is to be delivered makes a decoration needless: one of the same kind for
// the same message, and with the same emoji, or the deletion of that message.
func Superseded(ctx context.Context, r store.Reader, m *msg.Message) (bool, error) {
	platform, _ := msg.SplitJID(m.ChatJID)
	return store.Value[bool](ctx, r, `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_outbox
		WHERE out_state IN ('queued', 'sending') AND platform = ?1||'' AND chat_jid = ?2 AND thread_id = ?3 AND id > ?4
		AND (kind = 'delete' OR kind = ?5 AND (kind <> 'reaction' OR content IN (?6, '-'||?6)))
		AND ifnull(target_id, '') = ?7 AND ifnull(derived_from, 0) = ?8)`, platform, m.ChatJID, m.ThreadID, m.ID, m.Kind,
		strings.TrimPrefix(m.Content, "-"), m.TargetID, m.DerivedFrom)
}

// Target returns the outbound row that an outbound row is about, as it was delivered, with its edits before
// that row; nil if the row names none.
func Target(ctx context.Context, r store.Reader, m *msg.Message) (*msg.Target, error) {
	if m.DerivedFrom == 0 || endsCopy(m) {
		return nil, nil
	}
	target, err := r.Message(ctx, m.DerivedFrom)
	if err != nil || target == nil || target.Direction != msg.Out {
		return nil, err
	}
	t := &msg.Target{
		Kind: target.Kind, Files: len(target.Attachments),
		Open: target.OutState == msg.OutQueued || target.OutState == msg.OutSending,
	}
	if t.Parts, err = sentParts(ctx, r, target.ID); err != nil {
		return nil, err
	}
	changes, err := r.DerivedFrom(ctx, target.ID)
	for _, c := range changes {
		if err != nil || c.ID >= m.ID || c.Kind != msg.KindEdit || endsCopy(c) {
			continue
		}
		e := msg.SentEdit{Content: c.Content}
		e.Parts, err = sentParts(ctx, r, c.ID)
		t.Edits = append(t.Edits, e)
	}
	return t, err
}

// endsCopy reports whether a row is one of EndCopy: about the message that it names itself.
func endsCopy(m *msg.Message) bool { return m.Source == msg.SourceNotice && m.TargetID != "" }

func sentParts(ctx context.Context, r store.Reader, id int64) (parts []msg.SentPart, err error) {
	all, err := r.Deliveries(ctx, id)
	for _, d := range all {
		sent := d.State == msg.OutSent || d.State == msg.OutAmbiguous
		parts = append(parts, msg.SentPart{PlatformID: d.PlatformID, Sent: sent})
	}
	return parts, err
}

// Posts returns the rows of a chat whose platform ids are from the first id on and before the second, in the order of
// their bytes, at most limit. Where ids begin with the time, as on Slack, they are those of a span of time with all
// changes of them.
func Posts(ctx context.Context, r store.Reader, chatJID, from, before string, limit int) ([]*msg.Message, error) {
	return r.Messages(ctx, `SELECT `+store.MessageColumns+` FROM messages m INDEXED BY messages_platform_id
		WHERE m.chat_jid = ? AND m.platform_id IS NOT NULL AND m.platform_id >= ? AND m.platform_id < ?
		ORDER BY m.platform_id LIMIT ?+0`, chatJID, from, before, limit)
}

// ThreadPosts returns the platform ids of the newest posts in a thread, the newest first, at most limit.
func ThreadPosts(ctx context.Context, r store.Reader, chatJID, threadID string, limit int) ([]string, error) {
	return store.All(ctx, r, store.One[string],
		`SELECT platform_id FROM messages INDEXED BY messages_thread
		WHERE thread_id <> '' AND `+store.Spoken+` AND chat_jid = ? AND thread_id = ? AND platform_id IS NOT NULL
		ORDER BY id DESC LIMIT ?+0`, chatJID, threadID, limit)
}

// LastOfGroup returns the newest row of m's sender in its thread whose group key begins with a prefix, among the newest
// rows of the chat; nil if there is none.
func LastOfGroup(ctx context.Context, r store.Reader, m *msg.Message, prefix string) (*msg.Message, error) {
	return store.First(r.Messages(ctx, `SELECT `+store.MessageColumns+` FROM messages m WHERE m.id = (SELECT max(id) FROM
		(SELECT id, sender, thread_id, group_key FROM messages INDEXED BY messages_chat WHERE chat_jid = ?
		ORDER BY id DESC LIMIT 50) l WHERE sender = ? AND thread_id = ? AND substr(group_key, 1, ?) = ?)`,
		m.ChatJID, m.Sender, m.ThreadID, len(prefix), prefix))
}

const (
	// eventUndelivered is the event of the lines about rows that failed.
	eventUndelivered = "undelivered"
	// maxUndelivered is how many of these lines wait for a group's next prompt: an outage may cost a thousand rows.
	maxUndelivered = 10
	// maxProblem bounds the reason in a line, in bytes.
	maxProblem = 300
)

// ReportUndelivered tells the agent whose row failed for good, in the next prompt of its group. A fork whose own thread
// the row was to open is over.
func ReportUndelivered(tx *store.Tx, row *msg.Message, problem string, now int64) error {
	fork, err := unopenedFork(tx, row)
	if err != nil {
		return err
	}
	folder := msg.AgentOf(row.Sender)
	if fork != nil || folder != "" {
		if err := tx.Within(folder); err != nil {
			return err
		}
	}
	if fork != nil {
		return AbandonFork(tx, fork, "Users have not read what you wrote there.", now)
	}
	if folder == "" || !slices.Contains([]string{msg.SourceAgent, msg.SourceTool, msg.SourceReminder,
		msg.SourceBroadcast}, row.Source) {
		return nil
	}
	var waiting int
	if _, err := tx.Find([]any{&waiting}, `SELECT count(*) FROM (SELECT 1 FROM system_messages
		WHERE folder = ? AND turn_id IS NULL AND event = ? ORDER BY id DESC LIMIT ?+0) s`, folder, eventUndelivered,
		maxUndelivered); err != nil || waiting >= maxUndelivered {
		return err
	}
	what, where := "Message", ""
	if row.Kind.Changes() {
		what = "The " + string(row.Kind) + " with id"
	}
	if row.ThreadID != "" {
		where = " in thread " + row.ThreadID
	}
	body := fmt.Sprintf("%s %d to chat %s%s was not delivered: %s.", what, row.ID, row.ChatJID, where,
		store.Truncate(store.CleanText(problem), maxProblem))
	if reminder, _, err := factrows.ReminderOf(store.Uncancelled(), tx.Reader, row.ID); err != nil {
		return err
	} else if reminder != nil {
		body += fmt.Sprintf(" It is of reminder %d.", reminder.ID)
	}
	return tx.PutSystemMessage(folder, "gated", eventUndelivered, body, now)
}

// unopenedFork is the open fork whose own thread a failed row was for, if no message is in that thread: it could not be
// opened, for example. It is nil for any other row.
func unopenedFork(tx *store.Tx, row *msg.Message) (*msg.Fork, error) {
	if row.ThreadID == "" {
		return nil, nil
	}
	fork, err := tx.ForkOfThread(store.Uncancelled(), row.ChatJID, row.ThreadID)
	if err != nil || fork == nil || fork.EndedAt != 0 {
		return nil, err
	}
	var used bool // a message is in the thread, or may be
	if _, err := tx.Find([]any{&used}, `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_thread
		WHERE thread_id <> '' AND `+store.Spoken+` AND chat_jid = ? AND thread_id = ?
		AND (out_state IS NULL OR out_state NOT IN ('queued', 'sending', 'failed', 'cancelled')))`,
		row.ChatJID, row.ThreadID); err != nil || used {
		return nil, err
	}
	return fork, nil
}

// WantedFiles returns the oldest inbound rows of a platform whose attachments are
// wanted and still to be downloaded, at most limit.
func WantedFiles(ctx context.Context, r store.Reader, platform string, limit int) ([]*msg.Message, error) {
	return r.Messages(ctx, `SELECT `+store.MessageColumns+` FROM messages m INDEXED BY messages_wanted
		WHERE m.pending_files > 0 AND m.files_wanted = 1 AND m.platform = ?||'' AND m.direction = 'in'
		ORDER BY m.id LIMIT ?+0`, platform, limit)
}

// FetchedFiles is Tx.PutFiles for a download that began when the row had the attachments of. It returns ErrStale if an
// edit has replaced them since.
func FetchedFiles(tx *store.Tx, id int64, of, files []msg.Attachment) error {
	m, err := tx.Message(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	same := func(a, b msg.Attachment) bool { return a.Ref == b.Ref }
	if m != nil && !slices.EqualFunc(m.Attachments, of, same) {
		return fmt.Errorf("files of row %d were replaced: %w", id, store.ErrStale)
	}
	return tx.PutFiles(id, files)
}
