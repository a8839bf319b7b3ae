package rows_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/migrations"
	factrows "arizuko/pkg/facts/rows"
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
	outbound(t, s, storetest.Chat, "", msg.OutQueued)
	half := outbound(t, s, storetest.Chat, "", msg.OutSending)
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

// change executes statements as a shell would.
func change(t *testing.T, path, statements string) {
	t.Helper()
	file, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.SetMaxOpenConns(1)
	if _, err := file.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

func TestExamine_Rows(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s := storetest.OpenAt(t, path, nil)
	change(t, path, `INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, out_state) VALUES
		(1, 'telegram:1', 'out', 5, 5, 'queued'), (2, 'telegram:2', 'out', 6, 6, 'sending'), (3, 'web:main', 'out', 4, 4, 'queued'),
		(4, 'telegram:3', 'out', 7, 7, 'failed'), (5, 'telegram:3', 'out', 1, 1, 'ambiguous'), (6, 'telegram:3', 'out', 8, 8, 'ambiguous'),
		(7, 'telegram:3', 'out', 90, 90, 'sent');
		INSERT INTO deliveries (message_id, part, state, error_class, error) VALUES (4, 0, 'sent', NULL, NULL), (4, 1, 'failed', 'permanent', 'blocked'), (4, 2, 'failed', 'permanent', 'too');
		INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, disposition, reason, decided_at, decision_seq) VALUES
		(10, 'telegram:4', 'in', 20, 20, 'onboarding', 'x', 1, 1), (11, 'telegram:5', 'in', 21, 21, 'onboarding', 'x', 1, 2), (12, 'telegram:5', 'in', 99, 99, 'onboarding', 'x', 1, 3);
		INSERT INTO messages (id, chat_jid, direction, timestamp, received_at, pending_files, files_wanted) VALUES
		(20, 'telegram:6', 'in', 30, 30, 1, 1), (21, 'telegram:6', 'in', 31, 31, 1, 0), (22, 'telegram:6', 'in', 70, 70, 1, 1);
		INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('A', 'telegram:4', 'pending', 9), ('B', 'telegram:9', 'pending', 8);
		INSERT INTO onboarding_requests (code, chat_jid, state, created_at, decided_at) VALUES ('C', 'telegram:5', 'rejected', 1, 2);
		INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at) VALUES ('main', '', 'x:1', 'process', 1, 1), ('main', '', 'x:1', 'docker', 1, 1)`)
	waits := func(rows int, oldest int64, chat string, since int64) factrows.Waiting {
		return factrows.Waiting{Rows: rows, Oldest: oldest, ChatJID: chat, Since: since}
	}
	same(t, "by platform", storetest.Must(factrows.UnsentByPlatform(t.Context(), s.Reader))(t), []factrows.PlatformWaiting{
		{Platform: "telegram", Waiting: waits(2, 1, "telegram:1", 5)}, {Platform: "web", Waiting: waits(1, 3, "web:main", 4)},
	})
	same(t, "undelivered", storetest.Must(factrows.Undelivered(t.Context(), s.Reader, 2))(t), []factrows.UndeliveredRow{
		{ID: 6, ChatJID: "telegram:3", State: msg.OutAmbiguous}, {ID: 4, ChatJID: "telegram:3", State: msg.OutFailed, ErrorClass: "permanent", Error: "blocked"},
	})
	same(t, "parked", storetest.Must(factrows.ParkedWithoutRequest(t.Context(), s.Reader, 50))(t), waits(1, 11, "telegram:5", 21))
	same(t, "wanted", storetest.Must(factrows.WantedFiles(t.Context(), s.Reader, 50))(t), waits(1, 20, "telegram:6", 30))
	requests, code, err := factrows.WaitingRequests(t.Context(), s.Reader)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "requests", requests, waits(2, 0, "telegram:9", 8))
	same(t, "code", code, "B")
	same(t, "arrivals", storetest.Must(factrows.Arrivals(t.Context(), s.Reader))(t), factrows.Times{Last: 99, LastID: 12, Step: 70, SteppedA: 7, SteppedB: 10, StepAt: 20})
	same(t, "runtimes", storetest.Must(rows.LastRuntimes(t.Context(), s.Reader))(t), map[string]string{"main": "docker"})
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
