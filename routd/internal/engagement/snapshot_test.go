package engagement_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/engagement"
)

// BenchmarkSnapshot asks about places that have many claims, each with its delivered answer.
func BenchmarkSnapshot(b *testing.B) {
	const places, claims = 1000, 40
	path := storetest.Path(b)
	st := storetest.OpenAt(b, path, nil)
	db, err := sql.Open("sqlite3", path+"?_busy_timeout=10000")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	series := fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, places*claims-1)
	for _, query := range []string{
		`INSERT INTO messages (id, chat_jid, direction, sender, verb, timestamp, received_at, source, turn_id)
			SELECT i + 1, 'telegram:' || (i % 1000), 'in', 'telegram:7', 'mention', 10, 10, '', i + 1 FROM n`,
		`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, claims_engagement, surface, ceiling, state, created_at, ended_at)
			SELECT i + 1, 'conversation', 'eng', 'telegram:' || (i % 1000), '', i + 1, 1, 'x', 1, 'done', 10, 15 FROM n`,
		`INSERT INTO messages (id, chat_jid, direction, sender, verb, timestamp, received_at, source, turn_id, out_state)
			SELECT i + 1000001, 'telegram:' || (i % 1000), 'out', '', '', 12, 12, 'agent', i + 1, 'sent' FROM n`,
		`INSERT INTO deliveries (message_id, part, state, updated_at) SELECT i + 1000001, 0, 'sent', 20 FROM n`,
	} {
		if _, err := db.Exec(series + query); err != nil {
			b.Fatal(err)
		}
	}
	tracker, err := engagement.Open(b.Context(), st, ttl, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	if err := tracker.Store(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		snapshot := tracker.Snapshot()
		for i := range places {
			if got := snapshot.Engaged(b.Context(), fmt.Sprintf("telegram:%d", i), "", 21); got != "eng" || snapshot.Err() != nil {
				b.Fatal(got, snapshot.Err())
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*places), "us/place")
}
