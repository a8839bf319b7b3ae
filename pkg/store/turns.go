package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

const (
	queryTurns = `SELECT ` + TurnColumns +
		` FROM turns t WHERE (?1 = '' OR t.state = ?1) AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryOpenState = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
	queryFailedState = `SELECT ` + TurnColumns +
		` FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = ?1||''
		AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`
)

// TurnColumns are the columns of turns t that ReadTurns scans.
const TurnColumns = `t.id, ifnull(t.run_id,0), t.kind, t.folder, t.chat_jid, t.topic, t.thread_id, t.place,
	ifnull(t.reply_to,''), t.trigger_message_id, t.claims_engagement, t.surface, t.ceiling, t.state, t.reason,
	t.attempts, t.not_before, t.waits_for, t.row_count, t.row_bytes, t.observed_upto, t.frames, t.depth,
	ifnull(t.root_turn_id,0), ifnull(t.answered_with,0), t.error, t.error_kind, t.created_at, ifnull(t.started_at,0), ifnull(t.ended_at,0), ifnull(t.undone_at,0)`

func scanTurn(scan Scan) (*msg.Turn, error) {
	var t msg.Turn
	err := scan(&t.ID, &t.RunID, &t.Kind, &t.Folder, &t.ChatJID, &t.Topic, &t.ThreadID, &t.Place,
		&t.ReplyTo, &t.TriggerMessageID, &t.ClaimsEngagement, &t.Surface, &t.Ceiling, &t.State, &t.Reason,
		&t.Attempts, &t.NotBefore, &t.WaitsFor, &t.RowCount, &t.RowBytes, &t.ObservedUpto, &t.Frames, &t.Depth,
		&t.RootTurnID, &t.AnsweredWith, &t.Error, &t.ErrorKind, &t.CreatedAt, &t.StartedAt, &t.EndedAt, &t.UndoneAt)
	return &t, err
}

// ReadTurns runs a query of TurnColumns.
func (r Reader) ReadTurns(ctx context.Context, query string, args ...any) ([]*msg.Turn, error) {
	return All(ctx, r, scanTurn, query, args...)
}

// Turn returns a turn by id, nil if there is none.
func (r Reader) Turn(ctx context.Context, id int64) (*msg.Turn, error) {
	return First(r.ReadTurns(ctx, `SELECT `+TurnColumns+` FROM turns t WHERE t.id = ?`, id))
}

// TurnList selects turns. State, ChatJID and Folder are "" for all.
type TurnList struct {
	State   msg.TurnState
	ChatJID string
	Folder  string // only turns that have started; not together with the others
	Before  int64  // only those with a smaller id, 0 for all
	Limit   int
}

// Turns lists turns, newest first.
func (r Reader) Turns(ctx context.Context, l TurnList) ([]*msg.Turn, error) {
	before := OrNewest(l.Before)
	switch {
	case l.ChatJID != "":
		return r.ReadTurns(ctx, `SELECT `+TurnColumns+
			` FROM turns t INDEXED BY turns_chat WHERE t.chat_jid = ?1 AND (?2 = '' OR t.state = ?2)
				AND t.id < ?3 ORDER BY t.id DESC LIMIT ?4+0`,
			l.ChatJID, l.State, before, l.Limit)
	case l.Folder != "":
		return r.ReadTurns(ctx, `SELECT `+TurnColumns+
			` FROM turns t INDEXED BY turns_folder WHERE t.folder = ?1 AND t.started_at IS NOT NULL
				AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3+0`,
			l.Folder, before, l.Limit)
	}
	query := queryTurns // most turns are done: it stops when the page is full
	switch l.State {
	case msg.TurnQueued, msg.TurnRunning:
		query = queryOpenState
	case msg.TurnFailed, msg.TurnCancelled:
		query = queryFailedState
	}
	return r.ReadTurns(ctx, query, l.State, before, l.Limit)
}

// Progress is one row of turn_progress: the agent's report on its work on a turn before it answers.
type Progress struct {
	State     agentproto.Status
	Text      string // the answer so far, in markdown; "" once the turn is done
	Plan      []agentproto.Step
	Tools     []agentproto.Tool // in the order of their first events
	UpdatedAt int64             // unix ms
}

// Progress returns the last report of the agent on its work on a turn, nil if there is none.
func (r Reader) Progress(ctx context.Context, turnID int64) (*Progress, error) {
	var p Progress
	var plan, tools []byte
	found, err := r.Get(ctx, []any{&p.State, &p.Text, &plan, &tools, &p.UpdatedAt}, `SELECT state, text, plan, tools, updated_at FROM turn_progress WHERE turn_id = ?`,
		turnID)
	if err != nil || !found {
		return nil, err
	}
	if err := json.Unmarshal(plan, &p.Plan); err != nil {
		return nil, fmt.Errorf("plan of turn %d: %w", turnID, err)
	}
	if err := json.Unmarshal(tools, &p.Tools); err != nil {
		return nil, fmt.Errorf("tools of turn %d: %w", turnID, err)
	}
	return &p, nil
}

// ChatFileBytes is the size of the stored files of a chat's messages since a time, in unix ms, in both
// directions together, in bytes.
func (r Reader) ChatFileBytes(ctx context.Context, chatJID string, since int64) (int64, error) {
	// Of attachments that are stored. Other daemons may have written JSON of another shape.
	return Value[int64](ctx, r, `SELECT ifnull(sum(CASE WHEN a.type = 'object' AND json_extract(a.value, '$.path') <> '' AND CAST(json_extract(a.value, '$.size') AS INTEGER) > 0
		THEN CAST(json_extract(a.value, '$.size') AS INTEGER) END), 0) FROM messages m INDEXED BY messages_files CROSS JOIN json_each(m.attachments) a ON TRUE
		WHERE m.attachments IS NOT NULL AND m.chat_jid = ? AND m.received_at > ?`,
		chatJID, since)
}

// PutSystemMessage queues a line for a folder's next prompt.
func (tx *Tx) PutSystemMessage(folder, origin, event, body string, now int64) error {
	return tx.Exec(`INSERT INTO system_messages (folder, origin, event, body, created_at) VALUES (?,?,?,?,?)`,
		folder, origin, event, body, now)
}
