package engagement_test

import (
	"errors"
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

// scene is one place of a chat in which things happen at the times they are given.
type scene struct {
	*testing.T
	st     *store.Store
	ledger *engagement.Ledger
	now    int64
	eager  bool // routd looks after every change
}

func newScene(t *testing.T) *scene {
	s := &scene{T: t, st: storetest.Open(t)}
	s.write(func(tx *store.Tx) error { return tx.EnsureChat(chat, 0) })
	s.open()
	return s
}

// open starts routd anew.
func (s *scene) open() {
	s.Helper()
	ledger, err := engagement.Open(s.Context(), s.st, ttl, func() time.Time { return time.UnixMilli(s.now) })
	if err != nil {
		s.Fatal(err)
	}
	s.ledger = ledger
}

func (s *scene) write(fn func(*store.Tx) error) {
	s.Helper()
	if err := s.st.Write(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
	if s.eager {
		s.look()
	}
}

// called is a turn under way whose trigger came at a time; only a mention claims.
func (s *scene) called(verb, folder string, at int64) *msg.Turn {
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

// says puts out a row of a turn, in so many parts.
func (s *scene) says(turn *msg.Turn, source string, parts int) int64 {
	s.Helper()
	row := &msg.Message{ChatJID: chat, ThreadID: thread, Direction: msg.Out, Source: source, TurnID: turn.ID, OutState: msg.OutQueued}
	s.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(row)
		return errors.Join(err, tx.ClaimOutbound(row.ID, parts, 0))
	})
	return row.ID
}

// part tells what became of a part, and of its row if it was the last.
func (s *scene) part(row int64, part int, state msg.OutState, at int64, last bool) {
	s.Helper()
	s.write(func(tx *store.Tx) error {
		err := tx.PutDelivery(store.Delivery{MessageID: row, Part: part, State: state}, at)
		if last {
			err = errors.Join(err, tx.SettleOutbound(row, state, ""))
		}
		return err
	})
}

// delivers has a turn say one thing, which arrives.
func (s *scene) delivers(turn *msg.Turn, at int64) {
	s.Helper()
	s.part(s.says(turn, msg.SourceAgent, 1), 0, msg.OutSent, at, true)
}

func (s *scene) ends(turn *msg.Turn, at int64) {
	s.Helper()
	s.write(func(tx *store.Tx) error { return tx.FinishTurn(turn, msg.TurnDone, msg.ReasonAnswered, "", at) })
}

func (s *scene) word(folder string, at int64, ttl time.Duration) {
	s.Helper()
	s.now = at
	if _, err := s.ledger.Engage(s.Context(), chat, thread, folder, ttl, func(*engagement.State) error { return nil }); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) pin(at int64) {
	s.Helper()
	s.write(func(tx *store.Tx) error { return tx.PinGroup(chat, "ops", at) })
}

func (s *scene) look() {
	s.Helper()
	if err := s.ledger.CatchUp(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// engaged is who answers what came at a time.
func (s *scene) engaged(at int64) string {
	s.Helper()
	view, err := s.ledger.View(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	folder := view.Engaged(s.Context(), chat, thread, at)
	if view.Err() != nil {
		s.Fatal(view.Err())
	}
	return folder
}

// TestStories: who is engaged at which time, once all has happened. Each is told twice: to a
// routd that looks once, at the end, and to one that looks after every change.
func TestStories(t *testing.T) {
	type who map[int64]string
	for name, tc := range map[string]struct {
		tell func(*scene)
		want who
	}{
		"a mention claims from when it came": {
			func(s *scene) { s.called(msg.VerbMention, "eng", 10) },
			who{9: "", 10: "eng", 11: "eng", 10 + 2*life: "eng"},
		},
		"a message claims nothing": {
			func(s *scene) { s.delivers(s.called(msg.VerbMessage, "eng", 10), 20) },
			who{15: "", 21: ""},
		},
		"the first part opens the window, each one more slides it": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				s.delivers(turn, 20)
				s.delivers(turn, 30)
				s.ends(turn, 40)
				s.delivers(s.called(msg.VerbMessage, "eng", 50), 60)
			},
			who{25: "eng", 59 + life: "eng", 60 + life: ""},
		},
		"silence drops the claim": {
			func(s *scene) { s.ends(s.called(msg.VerbMention, "eng", 10), 20) },
			who{15: "eng", 21: ""},
		},
		"while the answer is on its way the claim stays, though it may fail in the end": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				row := s.says(turn, msg.SourceAgent, 1)
				s.ends(turn, 20)
				s.part(row, 0, msg.OutFailed, 30, true)
			},
			who{15: "eng", 25: "eng", 31: ""},
		},
		"a part that may have arrived has": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				s.part(s.says(turn, msg.SourceTool, 1), 0, msg.OutAmbiguous, 30, true)
				s.ends(turn, 40)
			},
			who{29 + life: "eng", 30 + life: ""},
		},
		"notices, reminders and broadcasts open nothing": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				for i, source := range []string{msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"} {
					s.part(s.says(turn, source, 1), 0, msg.OutSent, 20+int64(i), true)
				}
				s.ends(turn, 30)
			},
			who{25: "eng", 31: ""},
		},
		"the end by word drops what is under way": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				s.word("", 20, 0)
				s.delivers(turn, 30)
			},
			who{15: "", 31: ""},
		},
		"a mention after the end by word counts": {
			func(s *scene) {
				s.word("", 20, 0)
				s.called(msg.VerbMention, "eng", 21)
			},
			who{20: "", 21: "eng"},
		},
		"a word lasts as long as it says": {
			func(s *scene) { s.word("ops", 20, time.Minute) },
			who{19: "ops", 19 + 60*second: "ops", 20 + 60*second: ""},
		},
		"a word is not undone by an answer under way": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				row := s.says(turn, msg.SourceAgent, 2)
				s.word("ops", 20, ttl)
				s.part(row, 0, msg.OutSent, 30, false)
			},
			who{31: "ops"},
		},
		"an answer does not shorten what was given by word": {
			func(s *scene) {
				s.word("eng", 20, 3*ttl)
				turn := s.called(msg.VerbMention, "eng", 30)
				s.delivers(turn, 40)
				s.ends(turn, 50)
			},
			who{19 + 3*life: "eng", 20 + 3*life: ""},
		},
		"a pin ends what began before it, though it slid since": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 10)
				s.delivers(turn, 30)
				s.pin(20)
				s.delivers(turn, 40)
			},
			who{25: "", 41: ""},
		},
		"a pin leaves what came after it": {
			func(s *scene) {
				s.pin(20)
				turn := s.called(msg.VerbMention, "eng", 21)
				s.delivers(turn, 40)
				s.ends(turn, 50)
			},
			who{51: "eng", 40 + life: ""},
		},
		"whoever was called last answers, though another one's answer comes later": {
			func(s *scene) {
				first := s.called(msg.VerbMention, "eng", 10)
				later := s.called(msg.VerbMention, "ops", 15)
				s.delivers(first, 20)
				s.delivers(later, 30)
				s.ends(later, 31)
				s.delivers(first, 40)
			},
			who{16: "ops", 21: "ops", 29 + life: "ops", 30 + life: "eng"},
		},
		"what was delegated speaks for who was called": {
			func(s *scene) {
				root := s.called(msg.VerbMention, "eng", 10)
				kid := *root
				kid.Kind, kid.Folder, kid.RootTurnID = msg.Delegated, "eng/kid", root.ID
				later := s.called(msg.VerbMention, "ops", 15)
				s.write(func(tx *store.Tx) error { return tx.PutTurn(&kid, 0) })
				s.ends(root, 20)
				s.ends(later, 25)
				s.delivers(&kid, 30)
			},
			who{12: "eng", 16: "ops", 26: "eng", 31: "eng"},
		},
		"a broadcast turn slides nothing": {
			func(s *scene) {
				s.word("eng", 10, ttl)
				cast := s.called(msg.VerbMessage, "eng", 20)
				next := *cast
				next.Kind = msg.Broadcast
				s.write(func(tx *store.Tx) error { return tx.PutTurn(&next, 0) })
				s.delivers(&next, 30)
			},
			who{9 + life: "eng", 10 + life: ""},
		},
		"an answer opens its window though ten mentions came since": {
			func(s *scene) {
				first := s.called(msg.VerbMention, "eng", 10)
				for i := range int64(10) {
					s.ends(s.called(msg.VerbMention, "ops", 20+i), 30)
				}
				s.delivers(first, 40)
			},
			who{41: "eng", 39 + life: "eng"},
		},
		"an answer opens its window though the clock was set back": {
			func(s *scene) {
				turn := s.called(msg.VerbMention, "eng", 100)
				s.delivers(turn, 50)
				s.ends(turn, 60)
			},
			who{55: "eng", 49 + life: "eng"},
		},
		"a word counts though the clock was set back": {
			func(s *scene) {
				s.pin(100)
				s.word("eng", 50, ttl)
			},
			who{55: "eng", 49 + life: "eng"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, eager := range []bool{false, true} {
				s := newScene(t)
				s.eager = eager
				tc.tell(s)
				for at, want := range tc.want {
					if got := s.engaged(at); got != want {
						t.Errorf("at %d: %q is engaged, want %q; looked after every change: %t", at, got, want, eager)
					}
				}
			}
		})
	}
}

// A routd that was down reads on where it stopped, however much there is.
func TestCatchUpReadsEverything(t *testing.T) {
	s := newScene(t)
	turn := s.called(msg.VerbMention, "eng", 10)
	s.delivers(turn, 20)
	s.look()
	s.ends(turn, 30)
	const parts = 1203 // three pages
	row := s.says(turn, msg.SourceAgent, parts)
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

// A foreign adapter reports a delivery when it is over, in one row.
func TestRestartMissesNothing(t *testing.T) {
	s := newScene(t)
	turn := s.called(msg.VerbMention, "eng", 10)
	for part := range 5 {
		at := 20 + int64(part)
		row := &msg.Message{ChatJID: chat, Direction: msg.Out, Source: msg.SourceAgent, TurnID: turn.ID, OutState: msg.OutSent}
		s.write(func(tx *store.Tx) error {
			_, _, err := tx.PutMessage(row)
			return errors.Join(err, tx.PutDelivery(store.Delivery{MessageID: row.ID, State: msg.OutSent}, at))
		})
		s.open()
		s.look()
		if e, err := s.st.Engagement(s.Context(), chat, thread); err != nil || e.LastReply != row.ID || e.Until != at+life {
			t.Errorf("answer %d: %+v, %v", part, e, err)
		}
	}
}

func TestOpenRefusesABrokenCursor(t *testing.T) {
	s := newScene(t)
	s.write(func(tx *store.Tx) error { return tx.PutCursor("routd", "deliveries", "many") })
	if _, err := engagement.Open(s.Context(), s.st, ttl, time.Now); err == nil {
		t.Error("opened")
	}
}

func TestEngageAsksBeforeItActs(t *testing.T) {
	s := newScene(t)
	turn := s.called(msg.VerbMention, "eng", 10)
	s.delivers(turn, 20)
	s.ends(turn, 21)
	no := apierr.New(apierr.Forbidden, "no")
	_, err := s.ledger.Engage(t.Context(), chat, thread, "", 0, func(state *engagement.State) error {
		if got := state.Engaged(25); got != "eng" {
			t.Errorf("what was delivered is not known: %q", got)
		}
		return no
	})
	if !errors.Is(err, no) || s.engaged(25) != "eng" {
		t.Errorf("%v, %q", err, s.engaged(25))
	}
}

func TestViewKnowsItsOwnClaims(t *testing.T) {
	s := newScene(t)
	s.called(msg.VerbMention, "eng", 10)
	view, err := s.ledger.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	view.Claim(s.Context(), chat, thread, "ops", 20)
	view.Claim(s.Context(), chat, "", "ops", 30)
	for at, want := range map[int64]string{9: "", 15: "eng", 20: "ops"} {
		if got := view.Engaged(s.Context(), chat, thread, at); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
	if view.Engaged(s.Context(), chat, "", 29) != "" || view.Engaged(s.Context(), chat, "", 30) != "ops" || view.Engaged(s.Context(), "slack:C2", "", 30) != "" {
		t.Error("a claim is not that of its place")
	}
	if got := s.engaged(25); got != "eng" {
		t.Errorf("another view sees it too: %q", got)
	}
}

func TestViewOfAnUnreadableDatabase(t *testing.T) {
	s := newScene(t)
	view, err := s.ledger.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	if got := view.Engaged(s.Context(), chat, thread, 10); got != "" || apierr.KindOf(view.Err()) != apierr.Unavailable {
		t.Errorf("%q, %v", got, view.Err())
	}
	if _, err := s.ledger.View(t.Context()); apierr.KindOf(err) != apierr.Unavailable {
		t.Errorf("%v", err)
	}
}
