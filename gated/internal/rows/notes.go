package rows

import (
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// AttachNotes adds the oldest twenty notes of edits and deletions for a turn's
// group, chat and place to the turn.
func AttachNotes(tx *store.Tx, t *msg.Turn) error {
	const query = `UPDATE messages SET turn_id = ?1 WHERE id IN (SELECT id FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?2 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?3 AND thread_id = ?4
		AND (thread_id <> '' OR topic = ?5) ORDER BY id LIMIT 20)`
	return tx.Exec(query, t.ID, t.ChatJID, t.Folder, t.ThreadID, t.Place)
}

// SupersedeNotes discards earlier notes about a message that no agent has been
// shown, because a newer one follows.
func SupersedeNotes(tx *store.Tx, chatJID, targetID string) error {
	const query = `UPDATE messages INDEXED BY messages_note_targets SET reason = 'edit_superseded'
		WHERE chat_jid = ? AND reason = 'edit_note' AND turn_id IS NULL AND target_id = ?`
	return tx.Exec(query, chatJID, targetID)
}

// DropNotes discards the notes about a turn's messages that no agent has been shown.
func DropNotes(tx *store.Tx, t *msg.Turn) error {
	const query = `UPDATE messages INDEXED BY messages_note_targets SET reason = 'edit_superseded'
		WHERE chat_jid = ? AND reason = 'edit_note' AND turn_id IS NULL AND target_id IN
		(SELECT CASE m.verb WHEN 'edit' THEN m.target_id ELSE ifnull(o.platform_id, m.platform_id) END
			FROM messages m LEFT JOIN messages o ON o.id = m.derived_from WHERE m.turn_id = ?)`
	return tx.Exec(query, t.ChatJID, t.ID)
}

// releaseNotes lets the notes of a turn that is queued again wait for the next turn of its place to begin. A turn of
// notes alone ends by that.
func releaseNotes(tx *store.Tx, id int64) error {
	n, err := tx.Change(updateReleaseNotes, id)
	if err != nil || n == 0 {
		return err
	}
	rows, err := factrows.TurnMessages(store.Uncancelled(), tx.Reader, id)
	if err != nil || len(rows) > 0 {
		return err
	}
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	return cancelEmpty(tx, t, msg.ReasonEditNote, t.CreatedAt)
}

// PutNotes makes a turn of the notes that wait for the conversation of a running turn, and gives it to the turn's run.
// It returns nil if there are none, or a turn is queued that will have them, and ErrStale if the run takes no more.
func PutNotes(tx *store.Tx, of *msg.Turn, now int64) (*msg.Turn, error) {
	const query = `SELECT id FROM messages INDEXED BY messages_notes
		WHERE chat_jid = ?1 AND reason = 'edit_note' AND turn_id IS NULL AND routed_to = ?2 AND thread_id = ?3
		AND (thread_id <> '' OR topic = ?4) ORDER BY id LIMIT 1`
	t := &msg.Turn{
		Kind: msg.Conversation, Folder: of.Folder, ChatJID: of.ChatJID, Topic: of.Topic, ThreadID: of.ThreadID,
		Place: of.Place, ReplyTo: of.ReplyTo, Surface: of.Surface, Ceiling: of.Ceiling, State: msg.TurnQueued,
		Depth: of.Depth, RootTurnID: of.RootTurnID, CreatedAt: now,
	}
	found, err := tx.Find([]any{&t.TriggerMessageID}, query, t.ChatJID, t.Folder, t.ThreadID, t.Place)
	if err != nil || !found {
		return nil, err
	}
	later, err := store.First(tx.ReadTurns(store.Uncancelled(), queryNewestQueued, t.Lane(), t.ChatJID, t.Topic))
	if err != nil || later != nil && later.TriggerMessageID > t.TriggerMessageID { // its prompt has them, and in order
		return nil, err
	}
	if err = storeTurn(tx, t, ""); err != nil {
		return nil, err
	}
	if err = TakeTurn(tx, t.ID, of.RunID, now); err != nil {
		return nil, err
	}
	return tx.Turn(store.Uncancelled(), t.ID)
}
