package rows_test

import (
	"errors"
	"testing"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// oldChat stores n inbound rows, decided but for the last undecided ones, n outbound
// rows with a delivery and n queued turns.
func oldChat(t testing.TB, s *store.Store, n, undecided int) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(
			tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
				INSERT INTO messages (chat_jid, platform_id, reply_to_id, direction, timestamp, received_at, disposition, reason, decided_at, decision_seq)
				SELECT ?3, i, i - 1, 'in', i, i, CASE WHEN i > ?1 - ?2 THEN NULL ELSE 'dropped' END, CASE WHEN i > ?1 - ?2 THEN NULL ELSE 'no_route' END,
					CASE WHEN i > ?1 - ?2 THEN NULL ELSE i END, CASE WHEN i > ?1 - ?2 THEN NULL ELSE i END FROM n`, n, undecided, oldJID),
			tx.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, timestamp, received_at, out_state)
				SELECT chat_jid, 'o' || platform_id, 'out', timestamp, received_at, 'sent' FROM messages`),
			tx.Exec(`INSERT INTO deliveries (message_id, part, state, platform_id) SELECT id, 0, 'sent', platform_id FROM messages WHERE direction = 'out'`),
			tx.Exec(`INSERT INTO turns (kind, folder, chat_jid, topic, reply_to, trigger_message_id, surface, ceiling, state, created_at)
				SELECT 'conversation', 'main', chat_jid, '', platform_id, id, '', 0, 'queued', 1 FROM messages WHERE direction = 'in'`),
			tx.Exec(`INSERT INTO router_state (key, value) VALUES ('decision_seq', ?)`, n))
	})
}

const oldJID, newJID = "telegram:-5", "telegram:-1005"
