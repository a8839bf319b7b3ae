package rows

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Undo is one /undo, or with Redo one /redo. Its turn is the first of those that were answered together.
type Undo struct {
	ID        int64
	TurnID    int64
	Redo      bool
	Rest      bool // files that have changed since stay as they are
	Folder    string
	Topic     string
	MessageID int64  // the command, 0 if it was asked for on a page
	By        string // the user
	CreatedAt int64
}

const undoColumns = `u.id, u.turn_id, u.redo, u.rest, u.folder, u.topic, ifnull(u.message_id, 0), u.by, u.created_at`

func scanUndo(scan store.Scan) (*Undo, error) {
	var u Undo
	err := scan(&u.ID, &u.TurnID, &u.Redo, &u.Rest, &u.Folder, &u.Topic, &u.MessageID, &u.By, &u.CreatedAt)
	return &u, err
}

// OpenUndos returns the undos that are not carried out yet, oldest first.
func OpenUndos(ctx context.Context, r store.Reader) ([]*Undo, error) {
	const query = `SELECT ` + undoColumns + ` FROM undos u INDEXED BY undos_open WHERE u.state = 'open' ORDER BY u.id`
	return store.All(ctx, r, scanUndo, query)
}

// UndoOpen reports whether an undo of a topic is not carried out yet: no turn of it begins until it is.
func UndoOpen(ctx context.Context, r store.Reader, folder, topic string) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM undos INDEXED BY undos_open WHERE state = 'open' AND folder = ? AND topic = ?)`
	return store.Value[bool](ctx, r, query, folder, topic)
}

// LastBegun is the newest turn of a topic that has begun and counts, nil if there is none. Turns that were answered
// with another one are parts of that.
func LastBegun(ctx context.Context, r store.Reader, folder, topic string) (*msg.Turn, error) {
	const query = `SELECT ` + store.TurnColumns + ` FROM turns t INDEXED BY turns_folder WHERE t.folder = ? AND t.topic = ?
		AND t.started_at IS NOT NULL AND t.undone_at IS NULL AND t.answered_with IS NULL ORDER BY t.id DESC LIMIT 1`
	return store.First(r.ReadTurns(ctx, query, folder, topic))
}

// LastGroup is the group whose agent has begun a turn last in a topic of a chat, of the turns that count or, with all, of
// all; "" if none has.
func LastGroup(ctx context.Context, r store.Reader, chatJID, topic string, all bool) (string, error) {
	const query = `SELECT folder FROM turns INDEXED BY turns_chat WHERE chat_jid = ? AND topic = ? AND started_at IS NOT NULL
		AND (? OR undone_at IS NULL) AND answered_with IS NULL ORDER BY id DESC LIMIT 1`
	return store.Value[string](ctx, r, query, chatJID, topic, all)
}

// Undone returns the turns of a topic after an id that were taken back, oldest first.
func Undone(ctx context.Context, r store.Reader, folder, topic string, after int64) ([]*msg.Turn, error) {
	const query = `SELECT ` + store.TurnColumns + ` FROM turns t INDEXED BY turns_undone WHERE t.folder = ? AND t.topic = ?
		AND t.id > ? AND t.undone_at IS NOT NULL AND t.answered_with IS NULL ORDER BY t.id`
	return r.ReadTurns(ctx, query, folder, topic, after)
}

// LastIsUndone reports whether the last turn of a topic that had begun before another one was taken back.
func LastIsUndone(ctx context.Context, r store.Reader, folder, topic string, before int64) (bool, error) {
	const query = `SELECT undone_at IS NOT NULL FROM turns INDEXED BY turns_folder WHERE folder = ? AND topic = ? AND id < ?
		AND started_at IS NOT NULL ORDER BY id DESC LIMIT 1`
	return store.Value[bool](ctx, r, query, folder, topic, before)
}

// PutUndo stores an undo, which is to be carried out, and sets its id. It closes the topic's run and returns its id, 0
// if none was live.
func PutUndo(tx *store.Tx, u *Undo) (run int64, err error) {
	const query = `INSERT INTO undos (turn_id, redo, rest, folder, topic, message_id, by, state, created_at) VALUES (?,?,?,?,?,?,?,'open',?)`
	tx.Note(failpoint.PutUndo)
	tx.PokePeers()
	u.ID, err = tx.Insert(query, u.TurnID, u.Redo, u.Rest, u.Folder, u.Topic, store.Null(u.MessageID), u.By, u.CreatedAt)
	if err != nil {
		return 0, err
	}
	if _, err = tx.Find([]any{&run}, updateCloseLive, u.CreatedAt, u.Folder, u.Topic); err != nil {
		return 0, err
	}
	return run, EndRetryAsks(tx, u.TurnID, u.CreatedAt)
}

// EndUndo ends an open undo with the answer that users get. It returns ErrStale if it has ended.
func EndUndo(tx *store.Tx, u *Undo, done bool, answer string, now int64) error {
	const query = `UPDATE undos SET state = CASE WHEN ? THEN 'done' ELSE 'refused' END, answer = ?, ended_at = ?
		WHERE id = ? AND state = 'open'`
	tx.Note(failpoint.EndUndo)
	tx.PokePeers()
	return change(tx, "end undo", u.ID, query, done, answer, now, u.ID)
}

// LastTurn is the id of the newest turn, 0 if there is none.
func LastTurn(ctx context.Context, r store.Reader) (int64, error) {
	return store.Value[int64](ctx, r, `SELECT ifnull(max(id), 0) FROM turns`)
}

// LiveProcesses reports whether a process of an agent works in a topic.
func LiveProcesses(ctx context.Context, r store.Reader, folder, topic string) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM runs INDEXED BY runs_unended WHERE ended_at IS NULL AND folder = ? AND topic = ?)`
	return store.Value[bool](ctx, r, query, folder, topic)
}

// MarkUndone marks a turn as taken back at a time, in unix ms, or with 0 as one that counts again, with those that were
// answered together with it. session is what SessionOf is to know of the time of the undo.
func MarkUndone(tx *store.Tx, turn, at int64, session string) error {
	const query = `UPDATE turns SET undone_at = ?2, session_after = ?3 WHERE id = ?1`
	const queryFolded = `UPDATE turns SET undone_at = ?2, session_after = ?3 WHERE answered_with = ?1`
	tx.PokePeers()
	for _, q := range []string{query, queryFolded} {
		if err := tx.Exec(q, turn, store.Null(at), session); err != nil {
			return err
		}
	}
	return nil
}

// TurnSession is the session of a turn's agent: what it is and was called, "" for none.
type TurnSession struct {
	Agent  string
	Now    string
	Before string // the turn; Now if the turn has not named one
	After  string // the turn, if that is taken back and the session was not reset since
}

// SessionOf returns the session of a turn's agent. For a turn without a run, which waited for another attempt, that is
// the agent that worked in the topic last.
func SessionOf(ctx context.Context, r store.Reader, t *msg.Turn) (s TurnSession, err error) {
	const query = `SELECT ifnull(l.agent, ''), ifnull(t.session_before, ''), t.session_before IS NULL, t.session_after FROM turns t
		LEFT JOIN session_log l ON l.run_id = ifnull(t.run_id, (SELECT run_id FROM session_log WHERE folder = t.folder AND topic = t.topic ORDER BY id DESC LIMIT 1))
		WHERE t.id = ?`
	var unnamed bool
	if _, err = r.Get(ctx, []any{&s.Agent, &s.Before, &unnamed, &s.After}, query, t.ID); err != nil {
		return s, err
	}
	if s.Now, err = AgentSession(ctx, r, t.Folder, t.Topic, s.Agent); unnamed {
		s.Before = s.Now
	}
	return s, err
}

// turnsOf are a turn and those that were answered together with it.
const turnsOf = `(SELECT t.id FROM turns t WHERE t.id = ?1 UNION ALL SELECT t.id FROM turns t INDEXED BY turns_answered_with WHERE t.answered_with = ?1)`

// TurnQuestions returns the messages that a turn answers, oldest first, without notes of edits, which anyone may write.
func TurnQuestions(ctx context.Context, r store.Reader, turn int64) ([]*msg.Message, error) {
	const query = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_turn WHERE m.turn_id IN ` + turnsOf + `
		AND m.direction = 'in' AND ifnull(m.reason, '') <> 'edit_note' ORDER BY m.id`
	return r.Messages(ctx, query, turn)
}

// TurnOutbound returns what was sent for a turn, and done again since: messages, files, polls, edits, reactions and
// notices, such as the half of a stopped answer, oldest first.
func TurnOutbound(ctx context.Context, r store.Reader, turn int64) ([]*msg.Message, error) {
	const query = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_turn WHERE m.turn_id IN ` + turnsOf + `
		AND m.direction = 'out' AND m.source IN ('agent', 'tool', 'notice', 'replay') ORDER BY m.id`
	return r.Messages(ctx, query, turn)
}

// WithdrawnByUndo is the error of outbound rows that an undo has withdrawn.
const WithdrawnByUndo = "taken back before it was sent"

// WithdrawOutbound cancels an outbound row that is still queued, and reports whether it was.
func WithdrawOutbound(tx *store.Tx, id int64) (bool, error) {
	const query = `UPDATE messages SET out_state = 'cancelled', error = ? WHERE id = ? AND out_state = 'queued'`
	n, err := tx.Change(query, WithdrawnByUndo, id)
	return n > 0, err
}

// TextBefore is the text that a message had before one of its edits.
func TextBefore(ctx context.Context, r store.Reader, edit *msg.Message) (string, error) {
	const query = `SELECT content FROM (
		SELECT c.id, c.content FROM messages c INDEXED BY messages_derived WHERE c.derived_from = ?1 AND c.direction = 'out'
			AND c.kind = 'edit' AND c.id < ?2 AND ifnull(c.out_state, '') NOT IN ('failed', 'cancelled')
		UNION ALL SELECT m.id, m.content FROM messages m WHERE m.id = ?1) b ORDER BY id DESC LIMIT 1`
	return store.Value[string](ctx, r, query, edit.DerivedFrom, edit.ID)
}

// ActedCall is a tool call of a turn that has acted.
type ActedCall struct {
	Turn   int64
	Tool   string
	Result json.RawMessage
	At     int64
}

// ActedCalls returns the calls by which a turn, and those answered together with it, have acted, newest first.
func ActedCalls(ctx context.Context, r store.Reader, turn int64) ([]ActedCall, error) {
	const query = `SELECT turn_id, tool, result, created_at FROM tool_calls WHERE turn_id IN ` + turnsOf + ` ORDER BY created_at DESC, call`
	return store.All(ctx, r, func(scan store.Scan) (c ActedCall, err error) {
		var result string
		err = scan(&c.Turn, &c.Tool, &result, &c.At)
		c.Result = json.RawMessage(result)
		return c, err
	}, query, turn)
}

// LastUndoAt is when the last undo or redo of a turn that is done was carried out, in unix ms, 0 for none.
func LastUndoAt(ctx context.Context, r store.Reader, turn int64) (int64, error) {
	const query = `SELECT ended_at FROM undos u INDEXED BY undos_turn WHERE u.turn_id = ? AND u.state = 'done' ORDER BY u.id DESC LIMIT 1`
	return store.Value[int64](ctx, r, query, turn)
}

// ReopenFork opens a fork again that was ended at or after a time, in unix ms.
func ReopenFork(tx *store.Tx, chatJID, topic string, endedFrom int64) error {
	return tx.Exec(`UPDATE forks SET ended_at = NULL WHERE chat_jid = ? AND topic = ? AND ended_at >= ?`, chatJID, topic, endedFrom)
}

// TakenBack reports whether a message counts no more, since its turn was taken back.
func TakenBack(ctx context.Context, r store.Reader, id int64) (bool, error) {
	return store.Value[bool](ctx, r, `SELECT NOT (`+counts+`) FROM messages m WHERE m.id = ?`, id)
}

// errUndoing says that a topic's turns wait for an undo.
func errUndoing(folder, topic string) error {
	return fmt.Errorf("topic %q of %s is being taken back: %w", topic, folder, store.ErrStale)
}
