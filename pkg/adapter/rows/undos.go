package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Answer is an answer that was delivered.
type Answer struct {
	Lane store.Lane // of its changes
	Row  int64
}

// RecentAnswers lists the answers on a platform whose turns have ended after a time, and no later than another one, in
// unix ms, of the newest two thousand turns, oldest first.
func RecentAnswers(ctx context.Context, r store.Reader, platform string, after, until int64) ([]Answer, error) {
	return store.All(ctx, r, func(scan store.Scan) (a Answer, err error) {
		a.Lane.Decorations = true
		return a, scan(&a.Lane.ChatJID, &a.Lane.ThreadID, &a.Row)
	}, `SELECT m.chat_jid, m.thread_id, m.id FROM turns t JOIN messages m INDEXED BY messages_turn
		ON m.turn_id IS NOT NULL AND m.turn_id = t.id WHERE t.id > (SELECT max(id) FROM turns) - 2000
		AND m.platform = ?1||'' AND m.out_state = 'sent' AND `+factrows.HasUndo+`?2 AND t.ended_at <= ?3 ORDER BY m.id`,
		platform, after, until)
}

// EditUndeleted queues the edit of a message of a turn that was taken back, if a row that failed was to delete it.
func EditUndeleted(tx *store.Tx, row *msg.Message, now int64) error {
	if row.Kind != msg.KindDelete || row.Source != msg.SourceNotice {
		return nil
	}
	of, err := tx.Message(store.Uncancelled(), row.DerivedFrom)
	if err != nil || of == nil || of.Kind != msg.KindMessage {
		return err
	}
	ends, err := factrows.TurnEnds(store.Uncancelled(), tx.Reader, []*msg.Message{of})
	if err != nil || ends[of.ID] != factrows.TakenBack {
		return err
	}
	edit := *row
	edit.ID, edit.Kind, edit.Content, edit.Timestamp, edit.ReceivedAt = 0, msg.KindEdit, msg.TakenBack, now, now
	edit.OutState = msg.OutQueued
	_, _, err = tx.PutMessage(&edit)
	return err
}
