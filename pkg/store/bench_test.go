package store_test

import (
	"fmt"
	"testing"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// seed opens a database with n decided rows in a number of chats and an empty
// write-ahead log.
func seed(b *testing.B, n, chats int) *store.Store {
	b.Helper()
	path := storetest.Path(b)
	s := storetest.OpenAt(b, path, nil)
	storetest.Write(b, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
			INSERT INTO messages (chat_jid, platform_id, direction, sender, content, timestamp, received_at, source,
				routed_to, disposition, reason, decided_at, decision_seq, turn_id)
			SELECT 'telegram:-' || (i % ?2), 'native-' || i, 'in', 'telegram:7', 'a message of the usual length, give or take', i, i, 'teled',
				'acme', 'routed', 'route', i, i, i FROM n`, n, chats)
	})
	storetest.Write(b, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO router_state (key, value) VALUES ('decision_seq', ?)`, n)
	})
	if got := storetest.Must(s.LastMessageID(b.Context()))(b); got != int64(n) {
		b.Fatalf("%d rows", got)
	}
	c := storetest.Must(store.OpenCheckpointer(path))(b)
	defer c.Close()
	storetest.Must(c.Run(b.Context()))(b)
	return s
}

// atSizes runs a benchmark on a small and a large database, with the rows in
// many chats and in the one that is written to. The times should hardly differ.
func atSizes(b *testing.B, run func(b *testing.B, s *store.Store)) {
	for _, n := range []int{10_000, 1_000_000} {
		for _, chats := range []int{500, 1} {
			b.Run(fmt.Sprintf("rows=%d/chats=%d", n, chats), func(b *testing.B) {
				if testing.Short() && n > 10_000 {
					b.Skip("seeding takes long")
				}
				run(b, seed(b, n, chats))
			})
		}
	}
}

func fresh(i int) *msg.Message {
	return &msg.Message{
		ChatJID: "telegram:-0", PlatformID: fmt.Sprint("new-", i), Direction: msg.In, Sender: "telegram:7",
		Content: "a message of the usual length, give or take", Timestamp: int64(i), ReceivedAt: int64(i), Source: "teled",
	}
}

// BenchmarkPutMessage stores rows in one commit each and 100 to a commit;
// ns/op is per row.
func BenchmarkPutMessage(b *testing.B) {
	for _, group := range []int{1, 100} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			atSizes(b, func(b *testing.B, s *store.Store) {
				put := func(m *msg.Message) func(*store.Tx) error {
					return func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err }
				}
				for i := 0; b.Loop(); i++ {
					if i%group != 0 {
						continue
					}
					fns := make([]func(*store.Tx) error, group)
					for j := range fns {
						fns[j] = put(fresh(i + j))
					}
					for _, err := range s.WriteAll(b.Context(), fns...) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		})
	}
}

// BenchmarkUndecidedAndDecide stores a row, reads it and decides it, as one op
// with two commits.
func BenchmarkUndecidedAndDecide(b *testing.B) {
	atSizes(b, func(b *testing.B, s *store.Store) {
		for i := 0; b.Loop(); i++ {
			m := storetest.Stored(b, s, fresh(i))
			rows := storetest.Must(gatedtest.Undecided(b.Context(), s.Reader, m.ChatJID, 0, 200))(b)
			if len(rows) != 1 {
				b.Fatalf("%d rows", len(rows))
			}
			storetest.Decide(b, s, rows[0].ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder})
		}
	})
}

// BenchmarkPutMessage_Aliases stores 100 rows to a commit in chats that were never
// moved; ns/op is per row. The first alias costs every row one indexed read.
func BenchmarkPutMessage_Aliases(b *testing.B) {
	for _, aliases := range []int{0, 1000} {
		b.Run(fmt.Sprintf("aliases=%d", aliases), func(b *testing.B) {
			s := seed(b, 10_000, 500)
			storetest.Write(b, s, func(tx *store.Tx) error {
				return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
					INSERT INTO chat_aliases (old_jid, new_jid) SELECT 'telegram:-5' || i, 'telegram:-9' || i FROM n WHERE i <= ?1`, aliases)
			})
			for i := 0; b.Loop(); i++ {
				if i%100 != 0 {
					continue
				}
				storetest.Write(b, s, func(tx *store.Tx) error {
					for j := range 100 {
						if _, _, err := tx.PutMessage(fresh(i + j)); err != nil {
							return err
						}
					}
					return nil
				})
			}
		})
	}
}
