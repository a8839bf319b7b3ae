package store_test

import (
	"testing"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// fill stores rows of the chat with a text, at the times from first on.
func fill(t testing.TB, s *store.Store, first, n int, text string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT CAST(?1 AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + ?2 - 1)
			INSERT INTO messages (chat_jid, direction, content, timestamp, received_at) SELECT ?3, 'in', ?4, i, i FROM n`, first, n, storetest.Chat, text)
	})
}
