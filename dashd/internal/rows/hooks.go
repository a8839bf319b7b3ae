package rows

import (
	"context"

	"arizuko/pkg/store"
)

// maxHookRefusals is how many refusals of a hook are kept.
const maxHookRefusals = 20

// HookRefusal is a delivery that was refused.
type HookRefusal struct {
	At     int64 // unix ms
	Reason string
}

// PutHookRefusal stores that a delivery to the chat of a hook was refused. The last ones are kept.
func PutHookRefusal(tx *store.Tx, chatJID, reason string, now int64) error {
	err := tx.Exec(`INSERT INTO hook_refusals (chat_jid, at, reason) VALUES (?, ?, ?)`, chatJID, now, reason)
	if err == nil {
		err = tx.Exec(`DELETE FROM hook_refusals WHERE chat_jid = ?1 AND id <= (SELECT id FROM hook_refusals WHERE chat_jid = ?1
			ORDER BY id DESC LIMIT 1 OFFSET ?2+0)`, chatJID, maxHookRefusals)
	}
	return err
}

// HookRefusals are the refusals of a hook that are kept, the newest first.
func HookRefusals(ctx context.Context, r store.Reader, chatJID string) ([]HookRefusal, error) {
	return store.All(ctx, r, func(scan store.Scan) (h HookRefusal, err error) {
		return h, scan(&h.At, &h.Reason)
	}, `SELECT at, reason FROM hook_refusals WHERE chat_jid = ? ORDER BY id DESC`, chatJID)
}

// HookTurns counts the turns that the last 1,000 deliveries of a hook to a thread have started since a time, in unix ms.
func HookTurns(ctx context.Context, r store.Reader, chatJID, thread string, since int64) (int, error) {
	return store.Value[int](ctx, r, queryHookTurns, chatJID, thread, since)
}

// LastHookDelivery is when the last delivery of a hook was stored, in unix ms, 0 for never.
func LastHookDelivery(ctx context.Context, r store.Reader, chatJID string) (int64, error) {
	return store.Value[int64](ctx, r, queryLastHookDelivery, chatJID)
}
