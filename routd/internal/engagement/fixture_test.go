package engagement_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/engagement"
)

const (
	chat   = "slack:C1"
	thread = "1.5"
	second = int64(1000)
)

var life = ttl.Milliseconds()

// fixture is one place of a chat; each method takes the time at which it happens.
type fixture struct {
	*testing.T
	path    string
	st      *store.Store
	tracker *engagement.Tracker
	now     int64
	topics  int
	after   func(*fixture) // called after every change
}

func newFixture(t *testing.T) *fixture {
	path := storetest.Path(t)
	s := &fixture{T: t, path: path, st: storetest.OpenAt(t, path, nil), after: func(*fixture) {}}
	s.write(func(tx *store.Tx) error { return tx.EnsureChat(chat, 0) })
	s.open()
	return s
}

// open restarts routd.
func (s *fixture) open() {
	s.Helper()
	tracker, err := engagement.Open(s.Context(), s.st, ttl, func() time.Time { return time.UnixMilli(s.now) }, slog.New(slog.DiscardHandler))
	if err != nil {
		s.Fatal(err)
	}
	s.tracker = tracker
}

func (s *fixture) write(fn func(*store.Tx) error) {
	s.Helper()
	if err := s.st.Write(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
	s.after(s)
}

// call starts a turn whose trigger came at a time; only a mention claims.
func (s *fixture) call(verb, folder string, at int64) *msg.Turn {
	s.Helper()
	row := &msg.Message{ChatJID: chat, ThreadID: thread, Direction: msg.In, Verb: verb, ReceivedAt: at}
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: chat, ThreadID: thread, Place: thread, ClaimsEngagement: verb == msg.VerbMention,
		Topic: fmt.Sprintf("#%d", s.topics), // a turn that waits would take in one of the same topic
	}
	s.topics++
	s.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(row)
		turn.TriggerMessageID = row.ID
		_, putTurn := gatedtest.PutTurn(tx, turn, 0)
		return errors.Join(err, putTurn, tx.Decide(row.ID, store.Decision{
			Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: turn.ID, ThreadID: thread,
		}, at))
	})
	return turn
}

// continued starts a turn whose trigger came while its place was engaged.
func (s *fixture) continued(folder string, at int64) *msg.Turn {
	s.Helper()
	turn := s.call(msg.VerbMessage, folder, at)
	s.join(turn, msg.VerbMessage, msg.ReasonEngaged, at)
	return turn
}

// join makes a turn that waits take in a row. It claims the turn's place if the row is a mention, or
// came while it was engaged.
func (s *fixture) join(turn *msg.Turn, verb string, reason msg.Reason, at int64) {
	s.Helper()
	row := &msg.Message{ChatJID: chat, ThreadID: thread, Direction: msg.In, Verb: verb, ReceivedAt: at}
	s.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(row)
		return errors.Join(err, tx.Decide(row.ID, store.Decision{
			Disposition: msg.Routed, Reason: reason, RoutedTo: turn.Folder, TurnID: turn.ID, ThreadID: thread,
		}, at))
	})
	if verb == msg.VerbMention || reason == msg.ReasonEngaged {
		s.shell(fmt.Sprintf(`UPDATE turns SET claims_engagement = 1 WHERE id = %d`, turn.ID))
	}
}

// queue stores an outbound row of a turn, in parts.
func (s *fixture) queue(turn *msg.Turn, source string, parts int) int64 {
	s.Helper()
	row := &msg.Message{ChatJID: chat, ThreadID: thread, Direction: msg.Out, Source: source, TurnID: turn.ID, OutState: msg.OutQueued}
	s.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(row)
		return errors.Join(err, tx.ClaimOutbound(row.ID, parts, 0))
	})
	return row.ID
}

// part stores the result of a part, and of its row if it was the last.
func (s *fixture) part(row int64, part int, state msg.OutState, at int64, last bool) {
	s.Helper()
	s.write(func(tx *store.Tx) error {
		err := tx.PutDelivery(store.Delivery{MessageID: row, Part: part, State: state}, at)
		if last {
			err = errors.Join(err, tx.SettleOutbound(row, state, ""))
		}
		return err
	})
}

// deliver delivers an answer of a turn.
func (s *fixture) deliver(turn *msg.Turn, at int64) {
	s.Helper()
	s.part(s.queue(turn, msg.SourceAgent, 1), 0, msg.OutSent, at, true)
}

func (s *fixture) end(turn *msg.Turn, at int64) {
	s.Helper()
	s.write(func(tx *store.Tx) error {
		return gatedtest.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", at)
	})
}

func (s *fixture) engage(folder string, at int64, ttl time.Duration) {
	s.Helper()
	s.now = at
	if _, err := s.tracker.Engage(s.Context(), chat, thread, folder, ttl, func(*store.Tx, *engagement.State) error { return nil }); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) pin(at int64) {
	s.Helper()
	s.write(func(tx *store.Tx) error { return gatedtest.PinGroup(tx, chat, "ops", at) })
}

func (s *fixture) catchUp() {
	s.Helper()
	if err := s.tracker.CatchUp(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) store() {
	s.Helper()
	if err := s.tracker.Store(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// engaged returns the folder that answers a row received at a time.
func (s *fixture) engaged(at int64) string {
	s.Helper()
	snapshot := s.tracker.Snapshot()
	folder := snapshot.Engaged(s.Context(), chat, thread, at)
	if snapshot.Err() != nil {
		s.Fatal(snapshot.Err())
	}
	return folder
}

// answer delivers the answer of a turn and ends it.
func (s *fixture) answer(turn *msg.Turn, at int64) {
	s.Helper()
	s.deliver(turn, at)
	s.end(turn, at-1)
}
