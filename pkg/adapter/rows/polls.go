package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PollsOpen returns the open polls that users of a platform can see, the newest first, at most limit.
func PollsOpen(ctx context.Context, r store.Reader, platform string, limit int) ([]*msg.StoredPoll, error) {
	return r.Polls(ctx, queryPollsOpen, platform, limit)
}

// MessageByPollRef returns the outbound row of the poll that a platform calls by a name of its own, nil
// if there is none.
func MessageByPollRef(ctx context.Context, r store.Reader, daemon, ref string) (*msg.Message, error) {
	id, err := store.Value[int64](ctx, r, queryPollRef, daemon, ref)
	if err != nil || id == 0 {
		return nil, err
	}
	return r.Message(ctx, id)
}

// PollsSending returns the outbound rows of polls that are being sent just now, so that their ids may be
// known soon: in a chat, or with chatJID "" on a platform. Those that wait for another attempt are none.
func PollsSending(ctx context.Context, r store.Reader, platform, chatJID string) ([]int64, error) {
	return store.All(ctx, r, store.One[int64], queryPollsSending, platform, chatJID)
}

// PutPollRef stores the name of an outbound row's poll on a daemon's platform.
func PutPollRef(tx *store.Tx, daemon, ref string, messageID int64) error {
	return tx.Exec(insertPollRef, daemon, ref, messageID)
}
