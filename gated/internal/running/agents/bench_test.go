package agents

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// BenchmarkRecover_Backlog starts on 100,000 queued turns. None may run yet, so all of
// them are looked at, once. It must take less than 2 s.
func BenchmarkRecover_Backlog(b *testing.B) {
	st := storetest.Open(b)
	err := st.Write(b.Context(), func(tx *store.Tx) error {
		m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Content: "hi"}
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		for i := range 100_000 {
			t := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: m.ChatJID, Surface: "x", TriggerMessageID: m.ID}
			if i == 0 {
				t.WaitsFor, t.NotBefore = msg.WaitsRetry, time.Now().Add(time.Hour).UnixMilli()
			}
			if _, err := rows.PutTurn(tx, t, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m := New(Config{MaxAgents: 5, Location: time.UTC}, st, slog.New(slog.DiscardHandler), nil)
		if err := m.Recover(context.Background()); err != nil {
			b.Fatal(err)
		}
		m.cancel()
	}
}
