package rows

import (
	"context"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PollsOpen returns the open polls that users of a platform can see, the newest first, at most limit.
func PollsOpen(ctx context.Context, r store.Reader, platform string, limit int) ([]*msg.StoredPoll, error) {
	return factrows.ReadPolls(ctx, r, `SELECT `+factrows.PollColumns+
		` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND m.platform = ? AND m.platform_id IS NOT NULL ORDER BY p.id DESC LIMIT ?+0`,
		platform, limit)
}

// MessageByPollRef returns the outbound row of the poll that a platform calls by a name of its own, nil
// if there is none.
func MessageByPollRef(ctx context.Context, r store.Reader, daemon, ref string) (*msg.Message, error) {
	id, err := store.Value[int64](ctx, r, `SELECT message_id FROM poll_refs WHERE daemon = ? AND ref = ?`, daemon, ref)
	if err != nil || id == 0 {
		return nil, err
	}
	return r.Message(ctx, id)
}

// PollsSending returns the outbound rows of polls that are being sent just now, so that their ids may be
// known soon: in a chat, or with chatJID "" on a platform. Those that wait for another attempt are none.
func PollsSending(ctx context.Context, r store.Reader, platform, chatJID string) ([]int64, error) {
	return store.All(ctx, r, store.One[int64],
		`SELECT m.id FROM messages m INDEXED BY messages_outbox CROSS JOIN deliveries d ON d.message_id = m.id
		WHERE m.out_state IN ('queued', 'sending') AND m.platform = ?1 AND (?2 = '' OR m.chat_jid = ?2)
		AND m.kind = 'poll' AND d.state = 'sending' LIMIT 100`, platform, chatJID)
}

// PutPollRef stores the name of an outbound row's poll on a daemon's platform.
func PutPollRef(tx *store.Tx, daemon, ref string, messageID int64) error {
	return tx.Exec(`INSERT INTO poll_refs (daemon, ref, message_id) VALUES (?,?,?)
		ON CONFLICT (daemon, ref) DO UPDATE SET message_id = excluded.message_id`, daemon, ref, messageID)
}
