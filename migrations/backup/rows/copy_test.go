package rows_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"arizuko/migrations"
	"arizuko/migrations/backup/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func noProgress(int64) error { return nil }

// TestCopy_WhileOthersWrite_IsOneMoment copies while two connections write rows in pairs.
func TestCopy_WhileOthersWrite_IsOneMoment(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	wrote := make(chan struct{}, 2)
	for _, s := range []*store.Store{storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)} {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				err := s.Write(context.Background(), func(tx *store.Tx) error {
					for range 2 {
						m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: string(make([]byte, 500)), Timestamp: 1, ReceivedAt: 1}
						if _, _, err := tx.PutMessage(m); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				if n == 200 {
					wrote <- struct{}{}
				}
			}
		})
	}
	storetest.Receive(t, "a writer", wrote)
	storetest.Receive(t, "a writer", wrote)
	for range 3 {
		dst := filepath.Join(t.TempDir(), "copy.db")
		if err := rows.Copy(t.Context(), path, dst, noProgress); err != nil {
			t.Fatal(err)
		}
		info, err := rows.InspectCopy(t.Context(), dst, true)
		if err != nil || info.Version != migrations.Latest() || info.Messages < 400 || info.Messages%2 != 0 {
			t.Errorf("%+v, %v", info, err)
		}
		if stat, err := os.Stat(dst); err != nil || stat.Mode() != 0o600 {
			t.Errorf("%v, %v", stat.Mode(), err)
		}
		if left, _ := filepath.Glob(dst + "-*"); len(left) > 0 {
			t.Errorf("the copy has %v beside it", left)
		}
	}
	stop()
	writers.Wait()
}

func TestCopy_ProgressFails_ReturnsItsError(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	err := rows.Copy(t.Context(), storetest.File(t), filepath.Join(t.TempDir(), "copy.db"), func(int64) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := rows.Copy(t.Context(), filepath.Join(t.TempDir(), "none.db"), filepath.Join(t.TempDir(), "c"), noProgress); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a database: %v", err)
	}
}

func TestInspectCopy_Broken_ReturnsErrDamaged(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	dst := filepath.Join(t.TempDir(), "copy.db")
	if err := rows.Copy(t.Context(), path, dst, noProgress); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dst)
	if err != nil {
		t.Fatal(err)
	}
	for at := 5 * 4096; at < 30*4096; at++ {
		text[at] ^= 0x55
	}
	if err := os.WriteFile(dst, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, thorough := range []bool{false, true} {
		if _, err := rows.InspectCopy(t.Context(), dst, thorough); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("thorough %v: %v", thorough, err)
		}
	}
}

func TestPrepareRestored_CancelOpen_LeavesNothingToDo(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	undecided := storetest.Inbound(t, s, storetest.Chat, "not decided")
	outbound(t, s, msg.OutQueued)
	half := outbound(t, s, msg.OutSending)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO deliveries (message_id, part, state) VALUES (?, 0, 'sent'), (?, 1, 'sending'), (?, 2, 'queued')`, half.ID, half.ID, half.ID)
	})
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at)
			VALUES (5, 'conversation', 'acme', ?, '', ?, 'dm', 1, 'queued', 1)`, storetest.Chat, undecided.ID)
	})
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO system_messages (folder, origin, event, turn_id, created_at) VALUES ('acme', 'gated', 'new_session', 5, 1), ('acme', 'gated', 'other', 5, 1)`)
	})
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO onboarding_requests (code, chat_jid, state, folder, decided_by, created_at) VALUES ('AAAA-1111', ?, 'pending', 'acme', 'telegram:9', 1)`, storetest.Chat)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := rows.PrepareRestored(t.Context(), path, true, 77); err != nil {
		t.Fatal(err)
	}
	s = storetest.OpenAt(t, path, nil)
	for what, want := range map[string]string{
		`SELECT disposition || ' ' || reason || ' ' || decided_at FROM messages WHERE id = 1`:                   "dropped stopped 77",
		`SELECT out_state FROM messages WHERE id = 2`:                                                           "cancelled",
		`SELECT out_state FROM messages WHERE id = 3`:                                                           "ambiguous",
		`SELECT group_concat(state, ' ') FROM deliveries ORDER BY part`:                                         "sent ambiguous cancelled",
		`SELECT state || ' ' || reason || ' ' || ended_at FROM turns`:                                           "cancelled cancelled 77",
		`SELECT event || ' ' || ifnull(turn_id, 'free') FROM system_messages`:                                   "other free",
		`SELECT state || ' ' || ifnull(folder, '-') || ' ' || ifnull(decided_by, '-') FROM onboarding_requests`: "pending - -",
	} {
		if got := storetest.Value[string](t, s, what); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if later := storetest.Inbound(t, s, storetest.Chat, "later"); later.ID < 1<<32 {
		t.Errorf("the next row has id %d", later.ID)
	}
}

func outbound(t *testing.T, s *store.Store, state msg.OutState) *msg.Message {
	t.Helper()
	return storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, OutState: state, Content: "hi"})
}
