package store

import (
	"context"
)

// Session is the stored session of a folder's topic, "" if there is none.
func (r Reader) Session(ctx context.Context, folder, topic string) (string, error) {
	return Value[string](ctx, r, querySession, folder, topic)
}

// PutSystemMessage queues a line for a folder's next prompt.
func (tx *Tx) PutSystemMessage(folder, origin, event, body string, now int64) error {
	return tx.Exec(insertSystem, folder, origin, event, body, now)
}
