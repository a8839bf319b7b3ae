package engagement_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/rows"
)

// stored returns the place's row.
func (s *fixture) stored() factrows.StoredEngagement {
	s.Helper()
	e, err := factrows.Engagement(s.Context(), s.st.Reader, chat, thread)
	if err != nil {
		s.Fatal(err)
	}
	return e
}

// A routd that was down continues where it stopped, whatever the number of deliveries.
func TestStore_ManyPages_StoresAll(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	s.deliver(turn, 20)
	s.store()
	s.end(turn, 30)
	const parts = 1203 // three pages of reading, seven of storing
	row := s.queue(turn, msg.SourceAgent, parts)
	s.write(func(tx *store.Tx) error {
		for part := range parts {
			if err := tx.PutDelivery(store.Delivery{MessageID: row, Part: part, State: msg.OutSent}, 40+int64(part)); err != nil {
				return err
			}
		}
		return tx.SettleOutbound(row, msg.OutSent, "")
	})
	s.open()
	for _, when := range []string{"read", "stored"} {
		if got := s.engaged(39 + parts - 1 + life); got != "eng" {
			t.Errorf("%s: the last part does not count: %q", when, got)
		}
		if got := s.engaged(40 + parts - 1 + life); got != "" {
			t.Errorf("%s: engaged for ever: %q", when, got)
		}
		s.store()
	}
	read, last, err := rows.DeliveriesRead(t.Context(), s.st.Reader)
	if e := s.stored(); e.LastReply != row || e.Folder != "eng" || e.Read != last || read != last || err != nil {
		t.Errorf("%+v, read %d of %d, %v", e, read, last, err)
	}
}

// A foreign adapter stores a delivery once, when it has ended.
func TestStore_AfterRestart_MissesNothing(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	for part := range 5 {
		at := 20 + int64(part)
		row := &msg.Message{ChatJID: chat, Direction: msg.Out, Source: msg.SourceAgent, TurnID: turn.ID, OutState: msg.OutSent}
		s.write(func(tx *store.Tx) error {
			_, _, err := tx.PutMessage(row)
			return errors.Join(err, tx.PutDelivery(store.Delivery{MessageID: row.ID, State: msg.OutSent}, at))
		})
		s.open()
		s.store()
		if e := s.stored(); e.LastReply != row.ID || e.Until != at+life {
			t.Errorf("answer %d: %+v", part, e)
		}
	}
}

// A retention job deletes old rows: later deliveries are read all the same.
func TestStore_RowsDeleted_ReadsLaterDeliveries(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	s.deliver(turn, 20)
	s.end(turn, 25)
	s.store()
	s.shell(`DELETE FROM deliveries`)
	s.open()
	turn = s.call(msg.VerbMention, "eng", 30)
	s.deliver(turn, 40)
	s.end(turn, 50)
	if got := s.engaged(39 + life); got != "eng" {
		t.Errorf("%q is engaged", got)
	}
	s.shell(`DELETE FROM deliveries`) // read, not stored
	s.store()
	if e := s.stored(); e.Until != 20+life {
		t.Errorf("%+v", e)
	}
	if got := s.engaged(39 + life); got != "" {
		t.Errorf("what was deleted is kept in memory: %q", got)
	}
	s.deliver(s.call(msg.VerbMention, "eng", 60), 70)
	s.store()
	if e := s.stored(); e.Until != 70+life {
		t.Errorf("%+v", e)
	}
}

// A move of a chat renames the ids of all that was ever sent there.
func TestCatchUp_ChatMoved_ReadsNothing(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	row := s.queue(turn, msg.SourceAgent, 1)
	s.write(func(tx *store.Tx) error {
		return errors.Join(tx.PutDelivery(store.Delivery{MessageID: row, State: msg.OutSent, PlatformID: "9"}, 20), tx.SettleOutbound(row, msg.OutSent, "9"))
	})
	s.store()
	before := s.stored()
	s.shell(`UPDATE deliveries SET platform_id = 'old:' || platform_id`)
	if changed, err := factrows.DeliveryChanges(t.Context(), s.st.Reader, before.Read, 10); err != nil || len(changed) != 0 {
		t.Errorf("%+v, %v", changed, err)
	}
}

// shell changes the database on another connection.
func (s *fixture) shell(query string) {
	s.Helper()
	db, err := sql.Open("sqlite3", s.path+"?_busy_timeout=10000")
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		s.Fatal(err)
	}
}

// lock holds the database's write lock until unlock is called.
func (s *fixture) lock() (unlock func()) {
	s.Helper()
	db, err := sql.Open("sqlite3", s.path)
	if err != nil {
		s.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		s.Fatal(err)
	}
	return func() {
		_, _ = db.Exec("ROLLBACK")
		db.Close()
	}
}

// While a process holds the write lock and Watch waits for it, questions are answered, by what was
// delivered.
func TestSnapshot_DatabaseLocked_AnswersAtOnce(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	s.deliver(turn, 20)
	s.end(turn, 30)
	unlock := s.lock()
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error)
	go func() { watched <- s.tracker.Watch(ctx, time.Millisecond, func(error) {}) }()
	for range 20 {
		limited, done := context.WithTimeout(t.Context(), 5*time.Second)
		snapshot := s.tracker.Snapshot()
		if got := snapshot.Engaged(limited, chat, thread, 19+life); got != "eng" || snapshot.Err() != nil {
			t.Fatalf("%q, %v", got, snapshot.Err())
		}
		done()
	}
	if e := s.stored(); e.Until != 0 {
		t.Errorf("stored under a lock of another process: %+v", e)
	}
	unlock()
	for s.stored().Until != 20+life {
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

func TestTracker_ContextEnded_ReturnsAtOnce(t *testing.T) {
	s := newFixture(t)
	s.deliver(s.call(msg.VerbMention, "eng", 10), 20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.tracker.State(ctx, chat, thread); !errors.Is(err, context.Canceled) {
		t.Errorf("State: %v", err)
	}
	snapshot := s.tracker.Snapshot()
	if got := snapshot.Engaged(ctx, chat, thread, 20); got != "" || !errors.Is(snapshot.Err(), context.Canceled) {
		t.Errorf("%q, %v", got, snapshot.Err())
	}
}

func TestWatch_Poke_Stores(t *testing.T) {
	s := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	watched, results := make(chan error), make(chan error)
	go func() { watched <- s.tracker.Watch(ctx, time.Hour, func(err error) { results <- err }) }()
	s.deliver(s.call(msg.VerbMention, "eng", 10), 20)
	s.tracker.Poke()
	if err := <-results; err != nil || s.stored().Until != 20+life {
		t.Errorf("%v, %+v", err, s.stored())
	}
	s.deliver(s.call(msg.VerbMention, "eng", 30), 40)
	s.catchUp() // a question: the deliveries it has read are stored
	if err := <-results; err != nil || s.stored().Until != 40+life {
		t.Errorf("%v, %+v", err, s.stored())
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

func TestWatch_Stop_StoresLastAnswers(t *testing.T) {
	s := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.deliver(s.call(msg.VerbMention, "eng", 10), 20)
	s.catchUp()
	if err := s.tracker.Watch(ctx, time.Hour, func(error) {}); err != nil || s.stored().Until != 20+life {
		t.Errorf("%v, %+v", err, s.stored())
	}
}

// Deliveries without an answer are stored as read now and then, so that a restart does not read all of
// them again.
func TestStore_NoAnswers_CursorFollows(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	s.part(s.queue(turn, msg.SourceNotice, 1), 0, msg.OutSent, 20, true)
	s.store()
	if read, _, err := rows.DeliveriesRead(t.Context(), s.st.Reader); err != nil || read != 0 {
		t.Errorf("a write for nothing: %d, %v", read, err)
	}
	row := s.queue(turn, msg.SourceNotice, 600)
	s.shell(`UPDATE deliveries SET state = 'sent'`)
	s.store()
	if read, last, err := rows.DeliveriesRead(t.Context(), s.st.Reader); err != nil || read != last || s.stored().LastReply == row {
		t.Errorf("read %d of %d, %v", read, last, err)
	}
}

// Questions are refused rather than answered from half of the deliveries.
func TestCatchUp_TooManyUnstored_RefusedUntilStored(t *testing.T) {
	tracker := backlog(t, 1200)
	tracker.SetMaxUnstored(600)
	for range 2 {
		if err := tracker.CatchUp(t.Context()); apierr.KindOf(err) != apierr.Unavailable {
			t.Errorf("%v", err)
		}
	}
	if err := tracker.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := tracker.State(t.Context(), "telegram:1200", "")
	if err != nil || s.Folder != "eng" || s.Until != 20+life {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestOpen_NoDatabase_Fails(t *testing.T) {
	st, err := store.Open(t.Context(), store.Options{Path: storetest.Path(t), Autocheckpoint: store.DefaultAutocheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := engagement.Open(t.Context(), st, ttl, time.Now, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened")
	}
}

// backlog stores n delivered answers in as many places, unread.
func backlog(t testing.TB, n int) *engagement.Tracker {
	t.Helper()
	path := storetest.Path(t)
	st := storetest.OpenAt(t, path, nil)
	db, err := sql.Open("sqlite3", path+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		`INSERT INTO messages (id, chat_jid, direction, sender, verb, timestamp, received_at, source)
			SELECT value, 'telegram:' || value, 'in', 'telegram:7', 'mention', 10, 10, '' FROM generate_series`,
		`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, claims_engagement, surface, ceiling, state, created_at, ended_at)
			SELECT value, 'conversation', 'eng', 'telegram:' || value, '', value, 1, 'x', 1, 'done', 10, 15 FROM generate_series`,
		`INSERT INTO messages (id, chat_jid, direction, sender, verb, timestamp, received_at, source, turn_id, out_state)
			SELECT value + 1000000, 'telegram:' || value, 'out', '', '', 12, 12, 'agent', value, 'sent' FROM generate_series`,
		`INSERT INTO deliveries (message_id, part, state, updated_at) SELECT value + 1000000, 0, 'sent', 20 FROM generate_series`,
	} {
		series := `WITH RECURSIVE generate_series (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM generate_series WHERE value < ?1) `
		if _, err := db.Exec(series+query, n); err != nil {
			t.Fatal(query, err)
		}
	}
	tracker, err := engagement.Open(t.Context(), st, ttl, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

func BenchmarkBacklog(b *testing.B) {
	const n = 100_000
	b.Run("read", func(b *testing.B) {
		tracker := backlog(b, n)
		b.ResetTimer()
		if err := tracker.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "us/answer")
	})
	b.Run("store", func(b *testing.B) {
		tracker := backlog(b, n)
		b.ResetTimer()
		if err := tracker.Store(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "us/answer")
	})
}
