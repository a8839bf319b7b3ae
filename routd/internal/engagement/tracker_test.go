package engagement_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/routd/internal/engagement"
)

// Each scenario runs with a routd that reads the deliveries at the end alone, with one that reads it
// after every change, and with one that stores it then.
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
		"a row of an engaged place claims it again, though its answer comes after the window": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.deliver(turn, 20)
				s.end(turn, 21)
				next := s.continued("eng", 19+life)
				s.deliver(next, 50+life)
				s.end(next, 51+life)
			},
			folders{19 + life: "eng", 40 + life: "eng", 49 + 2*life: "eng", 50 + 2*life: ""},
		},
		"silence on a row of an engaged place leaves the window": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.deliver(turn, 20)
				s.end(turn, 21)
				s.end(s.continued("eng", 30), 50+life)
			},
			folders{19 + life: "eng", 50 + life: "eng", 51 + life: ""},
		},
		"a mention that a waiting turn takes in claims after a requested end": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.engage("", 20, 0)
				s.join(turn, msg.VerbMention, msg.ReasonRoute, 30)
			},
			folders{15: "", 25: "", 30: "eng", 30 + 2*life: "eng"},
		},
		"a waiting turn claims by its first row and its last": {
			func(s *fixture) {
				turn := s.call(msg.VerbMention, "eng", 10)
				s.call(msg.VerbMention, "ops", 20)
				s.join(turn, msg.VerbMessage, msg.ReasonEngaged, 30)
				s.join(turn, msg.VerbMessage, msg.ReasonRoute, 40)
			},
			folders{9: "", 10: "eng", 20: "ops", 29: "ops", 30: "eng", 50: "eng"},
		},
		"a long turn holds its place beside many short ones": {
			func(s *fixture) {
				s.call(msg.VerbMention, "eng", 10)
				for i := range int64(40) {
					s.end(s.continued("eng", 20+i), 20+i)
				}
			},
			folders{100: "eng", 100 + 2*life: "eng"},
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
				s.write(func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, &kid, 0); return err })
				s.end(root, 20)
				s.end(later, 25)
				s.deliver(&kid, 30)
			},
			folders{12: "eng", 16: "ops", 26: "eng", 31: "eng"},
		},
		"an answer to a message that an agent injected counts for its own turn alone": {
			func(s *fixture) {
				turn := s.call(msg.VerbMessage, "eng", 10)
				elsewhere, injected := *turn, *turn
				elsewhere.ThreadID, elsewhere.Place, elsewhere.ClaimsEngagement = "", "", true
				s.write(func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, &elsewhere, 0); return err })
				injected.Folder, injected.RootTurnID = "ops", elsewhere.ID
				s.write(func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, &injected, 0); return err })
				s.deliver(&injected, 30)
				s.end(&injected, 31)
			},
			folders{20: "", 31: "", 40: ""},
		},
		"a broadcast turn slides nothing": {
			func(s *fixture) {
				s.engage("eng", 10, ttl)
				cast := s.call(msg.VerbMessage, "eng", 20)
				next := *cast
				next.Kind = msg.Broadcast
				s.write(func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, &next, 0); return err })
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
			for after, do := range map[string]func(*fixture){
				"nothing": func(*fixture) {}, "reads": (*fixture).catchUp, "stores": (*fixture).store,
			} {
				s := newFixture(t)
				s.after = do
				tc.run(s)
				for at, want := range tc.want {
					if got := s.engaged(at); got != want {
						t.Errorf("at %d: %q is engaged, want %q; after every change routd does: %s", at, got, want, after)
					}
				}
			}
		})
	}
}

// With a window of 4 s and answers that take 3 s, a conversation in which each message comes just
// before the window ends goes on. A reader asks about each row before it is stored, as gated does.
func TestSnapshot_BackAndForth_NeverDropsOut(t *testing.T) {
	for _, pause := range []int64{0, 500, 2900, 3900, 3999} {
		s := newFixture(t)
		tracker, err := engagement.Open(t.Context(), s.st, 4*time.Second, time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s.tracker = tracker
		now := 100 * second
		s.answer(s.call(msg.VerbMention, "eng", now), now+3*second)
		for range 20 {
			now += 3*second + pause
			for _, at := range []int64{now, now + 2999} { // the second one while the agent thinks
				if got := s.engaged(now); got != "eng" {
					t.Fatalf("pause %d, at %d: %q is engaged", pause, at, got)
				}
			}
			turn := s.continued("eng", now)
			if got := s.engaged(now + 2*second); got != "eng" {
				t.Fatalf("pause %d, while the agent thinks: %q is engaged", pause, got)
			}
			s.answer(turn, now+3*second)
		}
		if got := s.engaged(now + 7*second); got != "" {
			t.Errorf("pause %d: engaged for ever", pause)
		}
	}
}

func TestStore_EveryReply_IsTheLastOfItsPlace(t *testing.T) {
	s := newFixture(t)
	lastReply := func() int64 {
		t.Helper()
		state, err := s.tracker.State(t.Context(), chat, thread)
		if err != nil {
			t.Fatal(err)
		}
		s.store()
		if stored := s.stored().LastReply; stored != state.LastReply {
			t.Errorf("last reply %d in memory, %d stored", state.LastReply, stored)
		}
		return state.LastReply
	}
	turn := s.call(msg.VerbMessage, "eng", 10) // without any engagement
	first, second := s.queue(turn, msg.SourceAgent, 1), s.queue(turn, msg.SourceTool, 1)
	s.part(first, 0, msg.OutSent, 20, true)
	if got := lastReply(); got != first || s.engaged(20) != "" {
		t.Errorf("last reply %d, want %d; engaged %q", got, first, s.engaged(20))
	}
	third := s.queue(turn, msg.SourceAgent, 1)
	s.part(third, 0, msg.OutAmbiguous, 30, true)
	s.part(second, 0, msg.OutSent, 40, true)
	s.part(s.queue(turn, msg.SourceNotice, 1), 0, msg.OutSent, 50, true)
	s.part(s.queue(turn, msg.SourceAgent, 1), 0, msg.OutFailed, 60, true)
	if got := lastReply(); got != third {
		t.Errorf("last reply %d, want %d", got, third)
	}
	s.engage("", 70, 0)
	s.engage("ops", 80, ttl)
	if got := lastReply(); got != third {
		t.Errorf("after requests: last reply %d, want %d", got, third)
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
	_, err := s.tracker.Engage(t.Context(), chat, thread, "", 0, func(_ *store.Tx, state *engagement.State) error {
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
	snapshot := s.tracker.Snapshot()
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

func TestSnapshot_DatabaseClosed_Fails(t *testing.T) {
	s := newFixture(t)
	snapshot := s.tracker.Snapshot()
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	if got := snapshot.Engaged(s.Context(), chat, thread, 10); got != "" || snapshot.Err() == nil {
		t.Errorf("%q, %v", got, snapshot.Err())
	}
}

// A fork whose own thread it is, begun by a turn outside of threads, which a mention or nothing called.
func TestSnapshot_ForksThread_EngagedByItsFirstMessage(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{msg.VerbMessage, msg.VerbMention} {
		s := newFixture(t)
		row := &msg.Message{ChatJID: chat, Direction: msg.In, Verb: verb, ReceivedAt: 10}
		parent := &msg.Turn{Kind: msg.Conversation, Folder: "eng", ChatJID: chat, ClaimsEngagement: verb == msg.VerbMention}
		s.write(func(tx *store.Tx) error {
			_, _, err := tx.PutMessage(row)
			parent.TriggerMessageID = row.ID
			_, putTurn := gatedtest.PutTurn(tx, parent, 0)
			fork := &msg.Fork{ChatJID: chat, Topic: "#fix", Folder: "eng", ThreadID: thread, OwnThread: true, MessageID: row.ID, CreatedAt: 20}
			return errors.Join(err, putTurn, gatedtest.PutFork(tx, fork))
		})
		at := func(place string, now int64) string {
			t.Helper()
			state, err := s.tracker.State(t.Context(), chat, place)
			if err != nil {
				t.Fatal(err)
			}
			return state.Engaged(now)
		}
		s.deliver(parent, 30)
		if got := at(thread, 40); got != "eng" {
			t.Errorf("%s: in the fork's thread %q answers, want eng", verb, got)
		}
		s.write(func(tx *store.Tx) error {
			return gatedtest.FinishTurn(tx, parent, msg.TurnDone, msg.ReasonAnswered, "", 50)
		})
		if got := at("", 60); got != "" {
			t.Errorf("%s: the question to the fork opened a window for %q outside", verb, got)
		}
		inside := s.continued("eng", 70)
		s.deliver(inside, 80)
		s.engage("", 90, 0) // the fork is disengaged
		s.write(func(tx *store.Tx) error { return tx.EndFork(chat, "#fix", 91) })
		s.deliver(inside, 100)
		s.deliver(parent, 110)
		for _, restart := range []bool{false, true} {
			if restart {
				s.open()
			}
			if got := at(thread, 120) + at("", 120); got != "" {
				t.Errorf("%s: %q answers after the end", verb, got)
			}
		}
	}
}
