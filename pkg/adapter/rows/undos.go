package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// answerOf joins a turn t, and the last text m of its agent, while the answer may have an Undo button; the time since
// which the turn must have ended follows.
const answerOf = `m.direction = 'out' AND m.kind = 'message' AND m.source = 'agent' AND t.kind = 'conversation'
	AND t.state = 'done' AND t.undone_at IS NULL AND t.answered_with IS NULL
	AND NOT EXISTS (SELECT 1 FROM messages n INDEXED BY messages_turn WHERE n.turn_id IS NOT NULL AND n.turn_id = m.turn_id
		AND n.id > m.id AND n.direction = 'out' AND n.kind = 'message' AND n.source = 'agent')
	AND t.ended_at > `

// UndoUntil returns until when a row has an Undo button, in unix ms, 0 if it has none: it must be the last text of a
// turn that has ended since a time, and was not taken back.
func UndoUntil(ctx context.Context, r store.Reader, row, since int64) (until int64, err error) {
	ended, err := store.Value[int64](ctx, r, `SELECT t.ended_at FROM messages m JOIN turns t ON t.id = m.turn_id
		WHERE m.id = ?1 AND `+answerOf+`?2`, row, since)
	if err != nil || ended == 0 {
		return 0, err
	}
	return ended + msg.UndoTime.Milliseconds(), nil
}

// Answer is an answer that was delivered, and until when it has an Undo button.
type Answer struct {
	Lane      store.Lane
	Row       int64
	UndoUntil int64 // unix ms
}

// RecentAnswers lists the answers on a platform whose turns have ended since a time, in unix ms, of the newest two
// thousand turns, oldest first.
func RecentAnswers(ctx context.Context, r store.Reader, platform string, since int64) ([]Answer, error) {
	return store.All(ctx, r, func(scan store.Scan) (a Answer, err error) {
		err = scan(&a.Lane.ChatJID, &a.Lane.ThreadID, &a.Row, &a.UndoUntil)
		a.UndoUntil += msg.UndoTime.Milliseconds()
		return a, err
	}, `SELECT m.chat_jid, m.thread_id, m.id, t.ended_at FROM turns t JOIN messages m INDEXED BY messages_turn
		ON m.turn_id IS NOT NULL AND m.turn_id = t.id WHERE t.id > (SELECT max(id) FROM turns) - 2000
		AND m.platform = ?1||'' AND m.out_state = 'sent' AND `+answerOf+`?2 ORDER BY m.id`, platform, since)
}
