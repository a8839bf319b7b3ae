package store

import (
	"context"

	"arizuko/pkg/msg"
)

const TurnColumns = `t.id, ifnull(t.run_id,0), t.kind, t.folder, t.chat_jid, t.topic, t.thread_id, t.place,
	ifnull(t.reply_to,''), t.trigger_message_id, t.claims_engagement, t.surface, t.ceiling, t.state, t.reason,
	t.attempts, t.not_before, t.waits_for, t.row_count, t.row_bytes, t.observed_upto, t.frames, t.depth,
	ifnull(t.root_turn_id,0), ifnull(t.answered_with,0), t.error, t.error_kind, t.created_at, ifnull(t.started_at,0), ifnull(t.ended_at,0)`

func scanTurn(scan Scan) (*msg.Turn, error) {
	var t msg.Turn
	err := scan(&t.ID, &t.RunID, &t.Kind, &t.Folder, &t.ChatJID, &t.Topic, &t.ThreadID, &t.Place,
		&t.ReplyTo, &t.TriggerMessageID, &t.ClaimsEngagement, &t.Surface, &t.Ceiling, &t.State, &t.Reason,
		&t.Attempts, &t.NotBefore, &t.WaitsFor, &t.RowCount, &t.RowBytes, &t.ObservedUpto, &t.Frames, &t.Depth,
		&t.RootTurnID, &t.AnsweredWith, &t.Error, &t.ErrorKind, &t.CreatedAt, &t.StartedAt, &t.EndedAt)
	return &t, err
}

func (r Reader) ReadTurns(ctx context.Context, query string, args ...any) ([]*msg.Turn, error) {
	return All(ctx, r, scanTurn, query, args...)
}

// Turn returns a turn by id, nil if there is none.
func (r Reader) Turn(ctx context.Context, id int64) (*msg.Turn, error) {
	return First(r.ReadTurns(ctx, queryTurn, id))
}

// OpenTurns returns every turn that has not ended, oldest first.
func (r Reader) OpenTurns(ctx context.Context) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, queryOpenTurns)
}

// TurnList is which turns Turns lists. Of State, ChatJID and Folder what is "" does not count.
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
		return r.ReadTurns(ctx, queryChatTurns, l.ChatJID, l.State, before, l.Limit)
	case l.Folder != "":
		return r.ReadTurns(ctx, queryFolderTurns, l.Folder, before, l.Limit)
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

// FoldedInto returns the turns that were answered with a turn's answer, oldest first.
func (r Reader) FoldedInto(ctx context.Context, turnID int64) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, queryFoldedInto, turnID)
}
