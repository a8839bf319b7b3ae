package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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
		AND m.platform = ?1||'' AND m.out_state = 'sent' AND `+factrows.HasUndo+`?2 ORDER BY m.id`, platform, since)
}
