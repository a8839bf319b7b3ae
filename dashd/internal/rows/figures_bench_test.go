package rows_test

import (
	"testing"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/store/storetest"
)

// BenchmarkFigures counts 1,000,000 messages and 100,000 turns of half a year, as the charts of 26 weeks do at first, and those of
// the last two days, as the charts by hour do once a minute.
func BenchmarkFigures(b *testing.B) {
	path := storetest.Path(b)
	s := storetest.OpenAt(b, path, nil)
	const messages, each = 1_000_000, 26 * 7 * 24 * time.Hour / 1_000_000
	start := time.Now().Add(-messages * each).UnixMilli()
	text := `'a message of a chat, of about as many characters as they have on average, in a busy group ' || i`
	for _, insert := range []string{
		`INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, out_state) SELECT 'telegram:-' || (i % 500), iif(i % 3, 'in', 'out'),
			` + text + `, at, at, iif(i % 3, NULL, 'sent') FROM (SELECT i, ?2 + i * ?3 AS at FROM n)`,
		`INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at)
			SELECT 'conversation', 'main', 'telegram:-1', '', id, '', 1, 'done', received_at, received_at + 900, received_at + 9000 FROM messages WHERE id % 10 = 0 AND ?1 + ?2 + ?3`,
	} {
		storetest.Exec(b, path, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `+insert, messages, start, each.Milliseconds())
	}
	for name, since := range map[string]int64{"26 weeks": start, "2 days": time.Now().AddDate(0, 0, -2).UnixMilli()} {
		b.Run("messages of "+name, func(b *testing.B) {
			for b.Loop() {
				counted := 0
				_, err := rows.CountMessages(b.Context(), s.Reader, since, 900_000, 1<<60, func(_ int64, n [3]int) { counted += n[0] + n[1] })
				if err != nil || counted < 10_000 {
					b.Fatal(counted, err)
				}
			}
		})
		b.Run("turns of "+name, func(b *testing.B) {
			for b.Loop() {
				counted := 0
				if err := rows.EachTurn(b.Context(), s.Reader, since, func(rows.TurnTimes) { counted++ }); err != nil || counted < 1000 {
					b.Fatal(counted, err)
				}
			}
		})
	}
}
