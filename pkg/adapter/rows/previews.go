package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PreviewState is the state of a preview.
type PreviewState string

// The states of a preview. Only open ones change.
const (
	PreviewOpen    PreviewState = "open"    // its message shows the progress of the turn, or is being made
	PreviewFinal   PreviewState = "final"   // its message is the first part of an answer
	PreviewRemoved PreviewState = "removed" // its message is deleted, or was never made
	// it may have a message that stays, since its id is not known or no longer valid
	PreviewLost PreviewState = "lost"
)

// Preview is a turn, with what decides whether and how its progress is shown, and its open preview: a message that
// shows it.
type Preview struct {
	TurnID     int64
	Lane       store.Lane
	Running    bool  // the turn runs, and answers its chat
	StartedAt  int64 // unix ms, as are all times here
	ProgressAt int64 // when its progress was stored last, 0 for never
	Mode       msg.PreviewMode
	Behind     bool   // its agent has an older turn
	Waiting    bool   // its lane has rows to deliver
	ReplyTo    string // platform id of the message that the preview answers or would answer now, "" for none

	ID         int64  // of the open preview, 0 for none; without one the rest is empty
	PlatformID string // of its message, "" while that is not known
	Ending     bool   // it is to be removed, whatever its turn does
	CreatedAt  int64
}

// Open reports whether there is an open preview.
func (p *Preview) Open() bool { return p.ID != 0 }

func scanPreview(scan store.Scan) (p Preview, err error) {
	err = scan(&p.TurnID, &p.Lane.ChatJID, &p.Lane.ThreadID, &p.Running, &p.StartedAt, &p.ProgressAt, &p.Mode,
		&p.Behind,
		&p.Waiting, &p.ReplyTo, &p.ID, &p.PlatformID, &p.Ending, &p.CreatedAt)
	return p, err
}

const (
	// previewsOf selects the previews of the turns whose ids follow. Only the first message of a turn answers another
	// one.
	previewsOf = `SELECT t.id, ifnull(p.chat_jid, t.chat_jid), t.thread_id, t.state = 'running' AND t.preview <> '',
		ifnull(t.started_at, 0), ifnull(g.updated_at, 0), t.preview,
		EXISTS (SELECT 1 FROM turns o INDEXED BY turns_run WHERE o.state = 'running' AND o.run_id = t.run_id AND o.id < t.id),
		EXISTS (SELECT 1 FROM messages m INDEXED BY messages_outbox WHERE m.out_state IN ('queued', 'sending')
			AND m.platform = substr(t.chat_jid, 1, instr(t.chat_jid, ':') - 1) AND m.chat_jid = ifnull(p.chat_jid, t.chat_jid)
			AND m.thread_id = t.thread_id AND NOT ` + store.Decorates + `),
		CASE WHEN p.id IS NOT NULL THEN p.reply_to WHEN t.frames > 0 THEN '' ELSE ifnull(t.reply_to, '') END,
		ifnull(p.id, 0), ifnull(p.platform_id, ''), ifnull(p.ending, 0), ifnull(p.created_at, 0)
		FROM turns t LEFT JOIN previews p INDEXED BY previews_turn ON p.turn_id = t.id AND p.state = 'open'
		LEFT JOIN turn_progress g ON g.turn_id = t.id WHERE t.id IN `
	openPreviews = `SELECT turn_id FROM previews INDEXED BY previews_open WHERE state = 'open'`
)

// Previews lists the open previews of a platform, and the running turns that may get one.
func Previews(ctx context.Context, r store.Reader, platform string) ([]Preview, error) {
	return store.All(ctx, r, scanPreview, previewsOf+`(SELECT id FROM turns INDEXED BY turns_run
		WHERE state = 'running' AND preview <> '' AND chat_jid >= ?1 AND chat_jid < ?2
		UNION `+openPreviews+` AND chat_jid >= ?1 AND chat_jid < ?2)`, platform+":", platform+";")
}

// TurnPreview returns the preview of a turn, nil if there is no such turn.
func TurnPreview(ctx context.Context, r store.Reader, turnID int64) (*Preview, error) {
	return first(store.All(ctx, r, scanPreview, previewsOf+`(?)`, turnID))
}

// LanePreviews lists the open previews of a lane.
func LanePreviews(ctx context.Context, r store.Reader, l store.Lane) ([]Preview, error) {
	return store.All(ctx, r, scanPreview, previewsOf+`(`+openPreviews+` AND chat_jid = ? AND thread_id = ?)`,
		l.ChatJID, l.ThreadID)
}

// ShownPreview returns the open preview that a message of a chat is, nil if it is none.
func ShownPreview(ctx context.Context, r store.Reader, chatJID, platformID string) (*Preview, error) {
	return first(store.All(ctx, r, scanPreview, previewsOf+`(`+openPreviews+` AND chat_jid = ? AND platform_id = ?)`,
		chatJID, platformID))
}

// first returns the first row of a query that was read, nil if there is none.
func first[T any](all []T, err error) (*T, error) {
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// WrittenBelow reports whether users have written below the message of a preview.
func WrittenBelow(ctx context.Context, r store.Reader, p *Preview) (bool, error) {
	return store.Value[bool](ctx, r, `SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_chat
		WHERE m.chat_jid = ?2 AND m.id > (SELECT trigger_message_id FROM turns WHERE id = ?1) AND m.thread_id = ?3
		AND m.direction = 'in' AND m.verb IN ('', 'message', 'mention', 'reply') AND m.received_at >= ?4)`,
		p.TurnID, p.Lane.ChatJID, p.Lane.ThreadID, p.CreatedAt)
}

// BeginPreview stores that the message of a preview is going to be made. It returns ErrStale if the turn has a preview
// or does not run, or if its lane has rows to deliver.
func BeginPreview(tx *store.Tx, turnID, now int64) (*Preview, error) {
	tx.Note(failpoint.BeginPreview)
	p, err := TurnPreview(store.Uncancelled(), tx.Reader, turnID)
	if err != nil {
		return nil, err
	}
	if p == nil || !p.Running || p.Waiting || p.Open() {
		return nil, fmt.Errorf("preview of turn %d: %w", turnID, store.ErrStale)
	}
	p.CreatedAt = now
	p.ID, err = tx.Insert(`INSERT INTO previews (turn_id, chat_jid, thread_id, reply_to, state, created_at, updated_at)
		VALUES (?1,?2,?3,?4,'open',?5,?5)`, p.TurnID, p.Lane.ChatJID, p.Lane.ThreadID, p.ReplyTo, now)
	return p, err
}

// KeepPreview stores the id of a preview's message. It returns ErrStale if the preview is not open, or its chat was
// moved meanwhile, where the id says nothing.
func KeepPreview(tx *store.Tx, p *Preview, platformID string, now int64) error {
	tx.Note(failpoint.KeepPreview)
	return changePreview(tx, p.ID, `UPDATE previews SET platform_id = ?, updated_at = ?
		WHERE id = ? AND state = 'open' AND chat_jid = ?`, platformID, now, p.ID, p.Lane.ChatJID)
}

const updateEndPreview = `UPDATE previews SET state = ?, updated_at = ? WHERE id = ? AND state = 'open'`

// EndPreview stores the end of a preview, final excepted. It returns ErrStale if the preview is not open.
func EndPreview(tx *store.Tx, id int64, state PreviewState, now int64) error {
	tx.Note(failpoint.EndPreview)
	return changePreview(tx, id, updateEndPreview, state, now, id)
}

// OvertakePreview stores that an open preview must be removed, since a row goes out below it.
func OvertakePreview(tx *store.Tx, id, now int64) error {
	return changePreview(tx, id, `UPDATE previews SET ending = 1, updated_at = ? WHERE id = ? AND state = 'open'`, now, id)
}

func changePreview(tx *store.Tx, id int64, query string, args ...any) error {
	n, err := tx.Change(query, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("preview %d: %w", id, store.ErrStale)
	}
	return err
}

// TakeOverPreview makes the message of an open preview the first part of an outbound row, which was claimed in the same
// transaction and has not been sent.
func TakeOverPreview(tx *store.Tx, p *Preview, messageID, now int64) error {
	if err := changePreview(tx, p.ID, updateEndPreview, PreviewFinal, now, p.ID); err != nil {
		return err
	}
	return tx.PutDelivery(store.Delivery{MessageID: messageID, State: msg.OutSending, PlatformID: p.PlatformID}, now)
}

// GiveUpPreview opens the preview of a turn again, to be removed: its message has not become an answer. It does nothing
// if no answer has taken over that message.
func GiveUpPreview(tx *store.Tx, turnID int64, platformID string, now int64) error {
	return tx.Exec(`UPDATE previews SET state = 'open', ending = 1, updated_at = ?
		WHERE turn_id = ? AND state = 'final' AND platform_id = ?`, now, turnID, platformID)
}
