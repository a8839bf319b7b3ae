package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PutTurn stores a turn, and sets its id, state and run. In this order:
//   - an idle run of its address takes it, if no turn waits that could come before
//     it and fewer than maxAgents runs are busy;
//   - the newest queued turn of its conversation takes its rows in, if that is of
//     the same address and place, no run has begun it, and the rows fit. Then
//     joined is true, and t becomes that turn;
//   - it is queued.
//
// t.RowCount and t.RowBytes are the size of its rows; one without a size takes in
// no rows and joins no turn. A turn with t.WaitsFor is not given to a run.
func PutTurn(tx *store.Tx, t *msg.Turn, maxAgents int) (joined bool, err error) {
	tx.Note(failpoint.PutTurn)
	t.State, t.RunID = msg.TurnQueued, 0
	run, preview, notes, err := runFor(tx, t, maxAgents)
	if err != nil {
		return false, err
	}
	if run == 0 {
		if joined, err = join(tx, t); err != nil || joined {
			return joined, err
		}
		return false, storeTurn(tx, t, "")
	}
	t.RunID, t.State, t.StartedAt = run, msg.TurnRunning, t.CreatedAt
	if err = storeTurn(tx, t, preview); err != nil || !notes {
		return false, err
	}
	return false, AttachNotes(tx, t)
}

func storeTurn(tx *store.Tx, t *msg.Turn, preview msg.PreviewMode) (err error) {
	const query = `INSERT INTO turns (run_id, kind, folder, chat_jid, topic, thread_id, place, reply_to,
		trigger_message_id, claims_engagement, surface, ceiling, state, not_before, waits_for, row_count, row_bytes,
		depth, root_turn_id, created_at, started_at, preview) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	t.ID, err = tx.Insert(query,
		store.Null(t.RunID), t.Kind, t.Folder, t.ChatJID, t.Topic, t.ThreadID, t.Place, store.Null(t.ReplyTo),
		t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling, t.State, t.NotBefore, t.WaitsFor, t.RowCount,
		t.RowBytes, t.Depth, store.Null(t.RootTurnID), t.CreatedAt, store.Null(t.StartedAt), preview)
	pokeForTurn(tx, t)
	return err
}

// pokeForTurn pokes the adapter, which shows typing, and the peers.
func pokeForTurn(tx *store.Tx, t *msg.Turn) {
	tx.PokePeers()
	pokeTyping(tx, t)
}

// pokeTyping pokes the adapter of a turn's chat, so that it starts or stops to
// show typing.
func pokeTyping(tx *store.Tx, t *msg.Turn) { tx.Poke(msg.DaemonOf(t.ChatJID)) }

const queryNewestQueued = `SELECT ` + store.TurnColumns + ` FROM turns t INDEXED BY turns_conversation
		WHERE t.state = 'queued' AND t.lane = ? AND t.chat_jid = ? AND t.topic = ? ORDER BY t.id DESC LIMIT 1`

// join adds a new turn's rows to the newest queued turn of its conversation.
func join(tx *store.Tx, t *msg.Turn) (bool, error) {
	if t.RowCount == 0 || t.Kind != msg.Conversation {
		return false, nil
	}
	old, err := store.First(tx.ReadTurns(store.Uncancelled(), queryNewestQueued, t.Lane(), t.ChatJID, t.Topic))
	if err != nil || old == nil || !takesIn(old, t) {
		return false, err
	}
	if stopped, err := stopped(tx, old); err != nil || stopped {
		return false, err
	}
	newer, err := newerTrigger(tx, old, t)
	if err != nil {
		return false, err
	}
	if newer {
		old.TriggerMessageID, old.ReplyTo, old.Surface, old.Ceiling = t.TriggerMessageID, t.ReplyTo, t.Surface,
			t.Ceiling
	}
	old.ClaimsEngagement = old.ClaimsEngagement || t.ClaimsEngagement
	if old.WaitsFor == "" { // else the first files' time holds for all: the turn waits no longer for being joined
		old.WaitsFor, old.NotBefore = t.WaitsFor, t.NotBefore
	}
	old.RowCount, old.RowBytes = old.RowCount+t.RowCount, old.RowBytes+t.RowBytes
	*t = *old
	pokeForTurn(tx, t)
	return true, updateQueued(tx, t)
}

// updateQueued stores a queued turn whose rows have changed.
func updateQueued(tx *store.Tx, t *msg.Turn) error {
	const query = `UPDATE turns SET reply_to = ?, trigger_message_id = ?, claims_engagement = ?, surface = ?, ceiling = ?,
		not_before = ?, waits_for = ?, row_count = ?, row_bytes = ? WHERE id = ? AND state = 'queued'`
	return tx.Exec(query, store.Null(t.ReplyTo), t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling,
		t.NotBefore, t.WaitsFor, t.RowCount, t.RowBytes, t.ID)
}

// takesIn reports whether a queued turn may take in the rows of a newer one.
func takesIn(old, t *msg.Turn) bool {
	return old.Kind == t.Kind && old.Address() == t.Address() && old.Place == t.Place &&
		old.Depth == t.Depth && old.RootTurnID == t.RootTurnID &&
		old.Attempts == 0 && old.StartedAt == 0 && (old.WaitsFor == "" || old.WaitsFor == msg.WaitsFiles) &&
		old.RowCount > 0 && old.RowCount+t.RowCount <= msg.MaxTurnRows && old.RowBytes+t.RowBytes <= msg.MaxTurnBytes
}

// newerTrigger reports whether the joined turn answers the newer rows' trigger: a
// turn answers its last mention or reply, else its last row.
func newerTrigger(tx *store.Tx, old, t *msg.Turn) (bool, error) {
	const query = `SELECT n.verb IN ('mention', 'reply') OR o.verb NOT IN ('mention', 'reply')
		FROM messages o CROSS JOIN messages n ON n.id = ?2 WHERE o.id = ?1`
	var newer bool
	_, err := tx.Find([]any{&newer}, query, old.TriggerMessageID, t.TriggerMessageID)
	return newer, err
}

// MaxWait is the longest wait of a queued turn. One that seems to wait for longer, or that was stored or began
// maxSkew later than now, may start: the clock was set back.
const MaxWait = 3_600_000 // ms

// maxSkew is how far ahead of now a stored time may be although the clock was not set back: another machine's clock may
// be ahead, and rows that were stored since the caller read its own are later, too.
const maxSkew = 60_000 // ms

// waits reports whether a queued turn may not start yet. NextQueued has the same cases.
func waits(t *msg.Turn, now int64) bool {
	return t.NotBefore > now && t.NotBefore <= now+MaxWait && max(t.CreatedAt, t.StartedAt) <= now+maxSkew
}

// ending is how a turn ends.
type ending struct {
	state   msg.TurnState
	reason  msg.Reason
	kind    msg.ErrorKind // of the problem
	problem string
	// Of the last frame:
	replied      bool  // it has a message
	observedUpto int64 // the last decision that the prompt showed
	answeredWith int64 // the turn whose answer is for this one too, 0 for none
}

// endTurn sets an open turn's final state, and reports whether turns of its group had failed before. The system
// messages that its prompt carried are deleted if it was answered; else they are released for the folder's
// next prompt, except the one about the turn's own new session.
func endTurn(tx *store.Tx, t *msg.Turn, e ending, now int64) (failing bool, err error) {
	// It returns what most turns do not leave behind: a mark, open questions, lines of the prompt, a progress with a
	// text, failures of the group.
	const updateEndTurn = `UPDATE turns SET state = ?1, reason = ?2, error = ?3, error_kind = ?4, ended_at = ?5, attempts = attempts + CASE ?1 WHEN 'failed' THEN 1 ELSE 0 END,
		frames = frames + ?7, observed_upto = max(observed_upto, ?8), answered_with = ?9 WHERE id = ?6 AND state IN ('queued', 'running')
		RETURNING EXISTS (SELECT 1 FROM messages m INDEXED BY messages_turn WHERE m.turn_id = ?6 AND m.direction = 'out' AND m.source = 'waiting'),
		EXISTS (SELECT 1 FROM asks WHERE turn_id = ?6 AND state = 'open'),
		EXISTS (SELECT 1 FROM system_messages WHERE turn_id = ?6),
		EXISTS (SELECT 1 FROM turn_progress WHERE turn_id = ?6 AND text <> ''),
		EXISTS (SELECT 1 FROM group_failures WHERE folder = ?10)`
	const deleteSystem = `DELETE FROM system_messages WHERE turn_id = ? AND (? OR event = 'new_session')`
	tx.Note(failpoint.EndTurn)
	id := t.ID
	var marked, asked, briefed, progressed bool
	open, err := tx.Find([]any{&marked, &asked, &briefed, &progressed, &failing}, updateEndTurn, e.state, e.reason,
		e.problem, e.kind, now, id, e.replied, e.observedUpto, store.Null(e.answeredWith), t.Folder)
	if err == nil && !open {
		err = fmt.Errorf("end turn %d: %w", id, store.ErrStale)
	}
	if err != nil {
		return false, err
	}
	tx.TurnEnded(e.state, e.reason)
	tx.PokePeers()
	if marked && e.state != msg.TurnCancelled { // CancelTurn does it, behind its replies
		if err := tx.Unmark(id, now); err != nil {
			return false, err
		}
	}
	if asked {
		if err := expireAsks(tx, id, now); err != nil {
			return false, err
		}
	}
	if err := endRequest(tx, t, e.state, now); err != nil {
		return false, err
	}
	if briefed {
		if err := tx.Exec(deleteSystem, id, e.state == msg.TurnDone); err != nil {
			return false, err
		}
	}
	switch {
	case progressed && e.state == msg.TurnDone: // the answer is a message now
		err = tx.Exec(`UPDATE turn_progress SET text = '' WHERE turn_id = ?`, id)
	case briefed && e.state != msg.TurnDone:
		err = tx.Exec(`UPDATE system_messages SET turn_id = NULL WHERE turn_id = ?`, id)
	}
	return failing, err
}

// CancelTurn ends an open turn and cancels its unsent replies. It returns
// ErrStale if the turn has ended already.
func CancelTurn(tx *store.Tx, id int64, reason msg.Reason, now int64) error {
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("cancel turn %d: %w", id, store.ErrStale)
	}
	return cancelTurn(tx, t, reason, now)
}

func cancelTurn(tx *store.Tx, t *msg.Turn, reason msg.Reason, now int64) error {
	tx.Note(failpoint.CancelTurn)
	if _, err := endTurn(tx, t, ending{state: msg.TurnCancelled, reason: reason}, now); err != nil {
		return err
	}
	if err := CancelReplies(tx, t.ID); err != nil {
		return err
	}
	return tx.Unmark(t.ID, now)
}

// FinishTurn ends an open turn without another frame, as done after some output
// or as failed, with t.ErrorKind.
func FinishTurn(tx *store.Tx, t *msg.Turn, state msg.TurnState, reason msg.Reason, problem string, now int64) error {
	pokeTyping(tx, t)
	_, err := endTurn(tx, t, ending{state: state, reason: reason, kind: t.ErrorKind, problem: problem}, now)
	return err
}

// Requeue says how an open turn is queued again.
type Requeue struct {
	Attempt   bool         // it has used up an attempt
	WaitsFor  msg.WaitsFor // why it does not start before NotBefore
	NotBefore int64        // unix ms
	Kind      msg.ErrorKind
	Problem   string
}

const deleteTurnProgress = `DELETE FROM turn_progress WHERE turn_id = ?1`

// RequeueTurn queues an open turn again. It returns ErrStale if the turn has ended.
func RequeueTurn(tx *store.Tx, id int64, q Requeue) error {
	const query = `UPDATE turns SET state = 'queued', run_id = NULL, attempts = attempts + ?, waits_for = ?, not_before = ?,
		error = ?, error_kind = ? WHERE id = ? AND state IN ('queued', 'running')`
	tx.Note(failpoint.RequeueTurn)
	tx.PokePeers()
	if err := change(tx, "requeue turn", id, query, q.Attempt, q.WaitsFor, q.NotBefore, q.Problem, q.Kind,
		id); err != nil {
		return err
	}
	if err := tx.Exec(deleteTurnProgress, id); err != nil {
		return err
	}
	return releaseNotes(tx, id)
}

// ReviveTurn queues a failed or cancelled turn as if it had never run, or ends a
// queued turn's wait. It returns ErrStale in any other state, and while the turn is being taken back.
func ReviveTurn(tx *store.Tx, id int64) error {
	const query = `UPDATE turns SET state = 'queued', run_id = NULL, attempts = 0, not_before = 0, waits_for = '', frames = 0,
		reason = '', error = '', error_kind = '', started_at = NULL, ended_at = NULL, answered_with = NULL, session_before = NULL, undone_at = NULL
		WHERE id = ?1 AND (state IN ('failed', 'cancelled') OR state = 'queued' AND not_before > 0)
		AND NOT EXISTS (SELECT 1 FROM undos INDEXED BY undos_open WHERE state = 'open' AND turn_id = ?1)`
	if err := change(tx, "revive turn", id, query, id); err != nil {
		return err
	}
	tx.Poke("gated")
	return tx.Exec(deleteTurnProgress, id)
}

// Answered is the part of an answered turn that the next prompts of its session depend on.
type Answered struct {
	ObservedUpto int64 // its prompts have shown observed rows up to this decision
	EndedAt      int64 // unix ms
}

// LastAnswered is the last finished turn of a session with an id below `before`, zero
// if there is none.
func LastAnswered(ctx context.Context, r store.Reader, folder, topic string, before int64) (a Answered, err error) {
	const query = `SELECT observed_upto, ifnull(ended_at, 0) FROM turns INDEXED BY turns_session WHERE folder = ? AND topic = ? AND state = 'done'
		AND undone_at IS NULL AND id < ? ORDER BY id DESC LIMIT 1`
	_, err = r.Get(ctx, []any{&a.ObservedUpto, &a.EndedAt}, query, folder, topic, before)
	return a, err
}

// LastTurnAt is when the folder's last turn other than except began, 0 if there
// is none.
func LastTurnAt(ctx context.Context, r store.Reader, folder string, except int64) (int64, error) {
	const query = `SELECT started_at FROM turns INDEXED BY turns_folder WHERE folder = ? AND id <> ? AND started_at IS NOT NULL
		ORDER BY id DESC LIMIT 1`
	return store.Value[int64](ctx, r, query, folder, except)
}

// CountDelegations is the number of turns delegated below a root turn.
func CountDelegations(ctx context.Context, r store.Reader, rootTurnID int64) (int, error) {
	const query = `SELECT count(*) FROM turns WHERE root_turn_id = ? AND kind = 'delegated'`
	return store.Value[int](ctx, r, query, rootTurnID)
}

const updateReleaseNotes = `UPDATE messages SET turn_id = NULL WHERE turn_id = ? AND reason = 'edit_note'`

// cancelEmpty cancels a turn without messages. Its notes wait for the next one.
func cancelEmpty(tx *store.Tx, t *msg.Turn, reason msg.Reason, now int64) error {
	if err := tx.Exec(updateReleaseNotes, t.ID); err != nil {
		return err
	}
	pokeTyping(tx, t)
	return CancelTurn(tx, t.ID, reason, now)
}
