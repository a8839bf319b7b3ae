package engagement_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"arizuko/pkg/apierr"
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
	st            *store.Store
	tracker       *engagement.Tracker
	now           int64
	catchUpAlways bool // routd catches up after every change
}

func newFixture(t *testing.T) *fixture {
	s := &fixture{T: t, st: storetest.Open(t)}
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
	if s.catchUpAlways {
		s.catchUp()
	}
}

// call starts a turn whose trigger came at a time; only a mention claims.
func (s *fixture) call(verb, folder string, at int64) *msg.Turn {
	s.Helper()
	row := &msg.Message{ChatJID: chat, ThreadID: thread, Direction: msg.In, Verb: verb, ReceivedAt: at}
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: chat, ThreadID: thread, Place: thread, ClaimsEngagement: verb == msg.VerbMention,
	}
	s.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(row)
		turn.TriggerMessageID = row.ID
		return errors.Join(err, tx.PutTurn(turn, 0))
	})
	return turn
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
	s.write(func(tx *store.Tx) error { return tx.FinishTurn(turn, msg.TurnDone, msg.ReasonAnswered, "", at) })
}

func (s *fixture) engage(folder string, at int64, ttl time.Duration) {
	s.Helper()
	s.now = at
	if _, err := s.tracker.Engage(s.Context(), chat, thread, folder, ttl, func(*engagement.State) error { return nil }); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) pin(at int64) {
	s.Helper()
	s.write(func(tx *store.Tx) error { return tx.PinGroup(chat, "ops", at) })
}

func (s *fixture) catchUp() {
	s.Helper()
	if err := s.tracker.CatchUp(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// engaged returns the folder that answers a row received at a time.
func (s *fixture) engaged(at int64) string {
	s.Helper()
	snapshot, err := s.tracker.Snapshot(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	folder := snapshot.Engaged(s.Context(), chat, thread, at)
	if snapshot.Err() != nil {
		s.Fatal(snapshot.Err())
	}
	return folder
}

// Each scenario runs twice: with a routd that catches up once, at the end, and with one that catches
// up after every change.
func TestSnapshot_Scenarios_EngagedFolder(t *testing.T) {
	type folders map[int64]string // by time, once all has happened
	for name, tc := range map[string]struct {
		run  func(*fixture)
		want folders
	}{
		"a mention claims from when it came": {
			func(s *fixture) { s.call(msg.VerbMention, "eng", 10) },
			folders{9: "", 10: "eng", 11: "eng", 10 + 2*life: "eng"},
		},
		"a message claims nothing": {
			func(s *fixture) { s.deliver(s.call(msg.VerbMessage, "eng", 10), 20) },
			folders{15: "", 21: ""},
		},
		"the first part opens the window, each one more slides it": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.deliver(turn, 20)
				s.deliver(turn, 30)
				s.end(turn, 40)
				s.deliver(s.call(msg.VerbMessage, "eng", 50), 60)
			},
			folders{25: "eng", 59 + life: "eng", 60 + life: ""},
		},
		"silence drops the claim": {
			func(s *fixture) { s.end(s.call(msg.VerbMention, "eng", 10), 20) },
			folders{15: "eng", 21: ""},
		},
		"while the answer is on its way the claim stays, though it may fail in the end": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				row := s.queue(turn, msg.SourceAgent, 1)
				s.end(turn, 20)
				s.part(row, 0, msg.OutFailed, 30, true)
			},
			folders{15: "eng", 25: "eng", 31: ""},
		},
		"a part that may have arrived has": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.part(s.queue(turn, msg.SourceTool, 1), 0, msg.OutAmbiguous, 30, true)
				s.end(turn, 40)
			},
			folders{29 + life: "eng", 30 + life: ""},
		},
		"notices, reminders and broadcasts open nothing": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				for i, source := range []string{msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"} {
					s.part(s.queue(turn, source, 1), 0, msg.OutSent, 20+int64(i), true)
				}
				s.end(turn, 30)
			},
			folders{25: "eng", 31: ""},
		},
		"ending it on request drops claims in force": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.engage("", 20, 0)
				s.deliver(turn, 30)
			},
			folders{15: "", 31: ""},
		},
		"a mention after a requested end counts": {
			func(s *fixture) {
				s.engage("", 20, 0)
				s.call(msg.VerbMention, "eng", 21)
			},
			folders{20: "", 21: "eng"},
		},
		"a requested window lasts for its ttl": {
			func(s *fixture) { s.engage("ops", 20, time.Minute) },
			folders{19: "ops", 19 + 60*second: "ops", 20 + 60*second: ""},
		},
		"an earlier answer does not take a requested window": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				row := s.queue(turn, msg.SourceAgent, 2)
				s.engage("ops", 20, ttl)
				s.part(row, 0, msg.OutSent, 30, false)
			},
			folders{31: "ops"},
		},
		"an answer does not shorten a requested window": {
			func(s *fixture) {
				s.engage("eng", 20, 3*ttl)
				turn := s.call(msg.VerbMention, "eng", 30)
				s.deliver(turn, 40)
				s.end(turn, 50)
			},
			folders{19 + 3*life: "eng", 20 + 3*life: ""},
		},
		"a pin ends what began before it, though it slid since": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.deliver(turn, 30)
				s.pin(20)
				s.deliver(turn, 40)
			},
			folders{25: "", 41: ""},
		},
		"a pin leaves what came after it": {
			func(s *fixture) {
				s.pin(20)
				turn := s.call(msg.VerbMention, "eng", 21)
				s.deliver(turn, 40)
				s.end(turn, 50)
			},
			folders{51: "eng", 40 + life: ""},
		},
		"the group called last answers, though another one's answer comes later": {
			func(s *fixture) {
				first := s.call(msg.VerbMention, "eng", 10)
				later := s.call(msg.VerbMention, "ops", 15)
				s.deliver(first, 20)
				s.deliver(later, 30)
				s.end(later, 31)
				s.deliver(first, 40)
			},
			folders{16: "ops", 21: "ops", 29 + life: "ops", 30 + life: "eng"},
		},
		"a delegated turn answers for the group called": {
			func(s *fixture) {
				root := s.call(msg.VerbMention, "eng", 10)
				kid := *root
				kid.Kind, kid.Folder, kid.RootTurnID = msg.Delegated, "eng/kid", root.ID
				later := s.call(msg.VerbMention, "ops", 15)
				s.write(func(tx *store.Tx) error { return tx.PutTurn(&kid, 0) })
				s.end(root, 20)
				s.end(later, 25)
				s.deliver(&kid, 30)
			},
			folders{12: "eng", 16: "ops", 26: "eng", 31: "eng"},
		},
		"a broadcast turn slides nothing": {
			func(s *fixture) {
				s.engage("eng", 10, ttl)
				cast := s.call(msg.VerbMessage, "eng", 20)
				next := *cast
				next.Kind = msg.Broadcast
				s.write(func(tx *store.Tx) error { return tx.PutTurn(&next, 0) })
				s.deliver(&next, 30)
			},
			folders{9 + life: "eng", 10 + life: ""},
		},
		"an answer opens its window though ten mentions came since": {
			func(s *fixture) {
				first := s.call(msg.VerbMention, "eng", 10)
				for i := range int64(10) {
					s.end(s.call(msg.VerbMention, "ops", 20+i), 30)
				}
				s.deliver(first, 40)
			},
			folders{41: "eng", 39 + life: "eng"},
		},
		"an answer opens its window though the clock was set back": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 100)
				s.deliver(turn, 50)
				s.end(turn, 60)
			},
			folders{55: "eng", 49 + life: "eng"},
		},
		"a request counts though the clock was set back": {
			func(s *fixture) {
				s.pin(100)
				s.engage("eng", 50, ttl)
			},
			folders{55: "eng", 49 + life: "eng"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, catchUpAlways := range []bool{false, true} {
				s := newFixture(t)
				s.catchUpAlways = catchUpAlways
				tc.run(s)
				for at, want := range tc.want {
					if got := s.engaged(at); got != want {
						t.Errorf("at %d: %q is engaged, want %q; caught up after every change: %t", at, got, want, catchUpAlways)
					}
				}
			}
		})
	}
}

// A routd that was down continues where it stopped, whatever the number of deliveries.
func TestCatchUp_ManyPages_ReadsAll(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	s.deliver(turn, 20)
	s.catchUp()
	s.end(turn, 30)
	const parts = 1203 // three pages
	row := s.queue(turn, msg.SourceAgent, parts)
	for part := range parts {
		s.part(row, part, msg.OutSent, 40+int64(part), part == parts-1)
	}
	s.open()
	if got := s.engaged(39 + parts - 1 + life); got != "eng" {
		t.Errorf("the last part does not count: %q", got)
	}
	if got := s.engaged(40 + parts - 1 + life); got != "" {
		t.Errorf("engaged for ever: %q", got)
	}
	e, err := s.st.Engagement(s.Context(), chat, thread)
	if err != nil || e.LastReply != row || e.Folder != "eng" {
		t.Errorf("%+v, %v", e, err)
	}
	cursor, err := s.st.DaemonCursor(s.Context(), "routd", "deliveries")
	all, readErr := s.st.DeliveryChanges(s.Context(), 0, parts+10)
	if err != nil || readErr != nil || len(all) != parts+1 {
		t.Fatal(len(all), err, readErr)
	}
	if left, err := s.st.DeliveryChanges(s.Context(), all[len(all)-1].Seq, 1); err != nil || len(left) != 0 || cursor == "" {
		t.Errorf("read up to %s, and %v is left (%v)", cursor, left, err)
	}
}

// A foreign adapter stores a delivery once, when it has ended.
func TestCatchUp_AfterRestart_MissesNothing(t *testing.T) {
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
		s.catchUp()
		if e, err := s.st.Engagement(s.Context(), chat, thread); err != nil || e.LastReply != row.ID || e.Until != at+life {
			t.Errorf("answer %d: %+v, %v", part, e, err)
		}
	}
}

func TestOpen_InvalidCursor_Refused(t *testing.T) {
	s := newFixture(t)
	s.write(func(tx *store.Tx) error { return tx.PutCursor("routd", "deliveries", "many") })
	if _, err := engagement.Open(s.Context(), s.st, ttl, time.Now, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened")
	}
}

func TestEngage_NotAllowed_ChangesNothing(t *testing.T) {
	s := newFixture(t)
	turn := s.call(msg.VerbMention, "eng", 10)
	s.deliver(turn, 20)
	s.end(turn, 21)
	no := apierr.New(apierr.Forbidden, "no")
	_, err := s.tracker.Engage(t.Context(), chat, thread, "", 0, func(state *engagement.State) error {
		if got := state.Engaged(25); got != "eng" {
			t.Errorf("what was delivered is not known: %q", got)
		}
		return no
	})
	if !errors.Is(err, no) || s.engaged(25) != "eng" {
		t.Errorf("%v, %q", err, s.engaged(25))
	}
}

func TestSnapshot_OwnClaims_Count(t *testing.T) {
	s := newFixture(t)
	s.call(msg.VerbMention, "eng", 10)
	snapshot, err := s.tracker.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snapshot.Claim(s.Context(), chat, thread, "ops", 20)
	snapshot.Claim(s.Context(), chat, "", "ops", 30)
	for at, want := range map[int64]string{9: "", 15: "eng", 20: "ops"} {
		if got := snapshot.Engaged(s.Context(), chat, thread, at); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
	if snapshot.Engaged(s.Context(), chat, "", 29) != "" || snapshot.Engaged(s.Context(), chat, "", 30) != "ops" || snapshot.Engaged(s.Context(), "slack:C2", "", 30) != "" {
		t.Error("a claim is not that of its place")
	}
	if got := s.engaged(25); got != "eng" {
		t.Errorf("another snapshot sees it too: %q", got)
	}
}

func TestSnapshot_DatabaseClosed_Unavailable(t *testing.T) {
	s := newFixture(t)
	snapshot, err := s.tracker.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	if got := snapshot.Engaged(s.Context(), chat, thread, 10); got != "" || apierr.KindOf(snapshot.Err()) != apierr.Unavailable {
		t.Errorf("%q, %v", got, snapshot.Err())
	}
	if _, err := s.tracker.Snapshot(t.Context()); apierr.KindOf(err) != apierr.Unavailable {
		t.Errorf("%v", err)
	}
}
