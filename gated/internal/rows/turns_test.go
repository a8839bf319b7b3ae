package rows_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// routd reads turns when it is asked, so that a message wakes it once less.
func TestTurn_BeginsAndEnds_PokesAdapterAlone(t *testing.T) {
	t.Parallel()
	poked := map[string]bool{}
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { poked[daemon] = true })
	first := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ClaimsEngagement = true })
	run := gatedtest.Begun(t, s, first)
	second := gatedtest.Piped(t, s, run)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(gatedtest.AnswerTurn(tx, gatedtest.Answer(run, first, ""), 300), rows.CancelTurn(tx, second.ID, msg.ReasonCancelled, 300))
	})
	s.Close() // after the pokes
	if poked["routd"] || !poked["teled"] {
		t.Errorf("poked: %v", poked)
	}
}

func TestRequeueTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	requeue := func(attempt bool) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return rows.RequeueTurn(tx, first.ID, rows.Requeue{
				Attempt: attempt, WaitsFor: msg.WaitsRetry, NotBefore: 5000, Kind: msg.ErrorSession, Problem: "broke",
			})
		}
	}
	storetest.Write(t, s, requeue(true))
	want := *first
	want.Attempts, want.Error, want.NotBefore, want.StartedAt = 1, "broke", 5000, run.StartedAt
	want.WaitsFor, want.ErrorKind = msg.WaitsRetry, msg.ErrorSession
	differ(t, "got", storetest.Turn(t, s, first.ID), &want)
	storetest.Write(t, s, requeue(false))
	if got := storetest.Turn(t, s, first.ID); got.Attempts != 1 {
		t.Errorf("an attempt was counted: %+v", got)
	}
	refused(t, s, "a frame of the run it was taken from", func(tx *store.Tx) error {
		return gatedtest.AnswerTurn(tx, gatedtest.Answer(run, first, "late"), 300)
	})
}

func TestReviveTurn(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	failed := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, failed)
	gatedtest.StoreReply(t, s, rows.Reply{RunID: run.ID, TurnID: failed.ID, Text: "part", ObservedUpto: 1}, 250)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := rows.FinishTurn(tx, failed, msg.TurnFailed, msg.ReasonAgentError, "broke", 300); err != nil {
			return err
		}
		return rows.EndRun(tx, run.ID, "broke", 300)
	})
	backoff := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, backoff.ID, rows.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, Problem: "broke", NotBefore: 5000})
	})
	cancelled := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, cancelled.ID, msg.ReasonCancelled, 300) })
	for len(pokes) > 0 {
		<-pokes
	}
	for _, want := range []*msg.Turn{failed, backoff, cancelled} {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ReviveTurn(tx, want.ID) })
		got := storetest.Turn(t, s, want.ID)
		got.ObservedUpto = 0 // of no account before it is done
		differ(t, "revived", got, want)
		storetest.Eventually(t, "gated to be poked", func() bool { return storetest.Receive(t, "a poke", pokes) == "gated" })
	}
}

func TestCancelTurn_CancelsUnsentReplies(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	for range 3 {
		gatedtest.StoreReply(t, s, rows.Reply{RunID: run.ID, TurnID: first.ID, Text: "part"}, 300)
	}
	replies := storetest.Must(factrows.TurnReplies(t.Context(), s.Reader, first.ID))(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = CASE id WHEN ? THEN 'sent' ELSE 'sending' END WHERE id IN (?, ?)`,
			replies[0].ID, replies[0].ID, replies[1].ID)
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, first.ID, msg.ReasonCancelled, 400) })
	want := []msg.OutState{msg.OutSent, msg.OutSending, msg.OutCancelled}
	for i, m := range storetest.Must(factrows.TurnReplies(t.Context(), s.Reader, first.ID))(t) {
		if m.OutState != want[i] {
			t.Errorf("reply %d is %s, want %s", i, m.OutState, want[i])
		}
	}
	if got := storetest.Turn(t, s, first.ID); got.State != msg.TurnCancelled || got.Reason != msg.ReasonCancelled || got.EndedAt != 400 {
		t.Errorf("%+v", got)
	}
}

func TestTurns_Filters(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	a, b := gatedtest.Queued(t, s), gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	c := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, a.ID, msg.ReasonCancelled, 1) })
	started := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Folder = "telegram:-3", "started" })
	gatedtest.Begun(t, s, started)
	tests := []struct {
		list store.TurnList
		want []int64
	}{
		{store.TurnList{Limit: 10}, []int64{started.ID, c.ID, b.ID, a.ID}},
		{store.TurnList{Before: started.ID, Limit: 2}, []int64{c.ID, b.ID}},
		{store.TurnList{Before: b.ID, Limit: 2}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnQueued, Limit: 10}, []int64{c.ID, b.ID}},
		{store.TurnList{State: msg.TurnQueued, Before: c.ID, Limit: 10}, []int64{b.ID}},
		{store.TurnList{State: msg.TurnCancelled, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, Before: a.ID, Limit: 10}, nil},
		{store.TurnList{ChatJID: storetest.Chat, Limit: 10}, []int64{c.ID, a.ID}},
		{store.TurnList{ChatJID: storetest.Chat, Limit: 1}, []int64{c.ID}},
		{store.TurnList{ChatJID: storetest.Chat, Before: c.ID, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, ChatJID: storetest.Chat, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, ChatJID: "telegram:-2", Limit: 10}, nil},
		{store.TurnList{Folder: "started", Limit: 10}, []int64{started.ID}},
		{store.TurnList{Folder: "started", Before: started.ID, Limit: 10}, nil},
		{store.TurnList{Folder: a.Folder, Limit: 10}, nil}, // none has started
	}
	for _, tt := range tests {
		if got := turnIDs(storetest.Must(s.Turns(t.Context(), tt.list))(t)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestLastAnsweredLastTurnAtLastHome(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != "" {
		t.Errorf("home %q", got)
	}
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", math.MaxInt64))(t).ObservedUpto; got != 0 {
		t.Errorf("shown up to %d", got)
	}
	done := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, done)
	frame := gatedtest.Answer(run, done, "ok")
	frame.ObservedUpto = 7
	gatedtest.StoreReply(t, s, frame, 300)
	partial := gatedtest.Piped(t, s, run)
	gatedtest.StoreReply(t, s, rows.Reply{RunID: run.ID, TurnID: partial.ID, Text: "part", ObservedUpto: 9}, 310)
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", math.MaxInt64))(t).ObservedUpto; got != 7 {
		t.Errorf("shown up to %d while the next turn runs", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, storetest.Turn(t, s, partial.ID), msg.TurnDone, msg.ReasonInterrupted, "", 320)
	})
	failing := gatedtest.Piped(t, s, run)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, failing, msg.TurnFailed, msg.ReasonAgentError, "broke", 330)
	})
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", math.MaxInt64))(t).ObservedUpto; got != 9 {
		t.Errorf("shown up to %d, want the value of the last done turn", got)
	}
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "", partial.ID))(t); got.ObservedUpto != 7 || got.EndedAt != 300 {
		t.Errorf("before turn %d: %+v", partial.ID, got)
	}
	if got := storetest.Must(rows.LastAnswered(t.Context(), s.Reader, storetest.Folder, "#else", math.MaxInt64))(t).ObservedUpto; got != 0 {
		t.Errorf("another topic was shown up to %d", got)
	}

	waiting := gatedtest.Queued(t, s)
	for id, want := range map[int64]int64{
		done.ID: failing.StartedAt, partial.ID: failing.StartedAt, failing.ID: partial.StartedAt, waiting.ID: failing.StartedAt,
	} {
		if got := storetest.Must(rows.LastTurnAt(t.Context(), s.Reader, storetest.Folder, id))(t); got != want {
			t.Errorf("last turn other than %d began at %d, want %d", id, got, want)
		}
	}
	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != storetest.Folder {
		t.Errorf("home %q", got)
	}
	gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder = "else" })
	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != "else" {
		t.Errorf("home %q", got)
	}
}

func TestPutTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	root := gatedtest.Queued(t, s)
	want := &msg.Turn{
		Kind: msg.Delegated, Folder: "acme/eng", ChatJID: storetest.Chat, Topic: "#d7", ThreadID: "thread", Place: "place",
		ReplyTo: "native", TriggerMessageID: root.TriggerMessageID, ClaimsEngagement: true, Surface: "group", Ceiling: 4000,
		Depth: 1, RootTurnID: root.ID, CreatedAt: 5,
	}
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.PutTurn(tx, want, 0); return err })
	if want.State != msg.TurnQueued || want.ID == 0 {
		t.Errorf("stored as %+v", want)
	}
	differ(t, "got", storetest.Turn(t, s, want.ID), want)
	if n := storetest.Must(rows.CountDelegations(t.Context(), s.Reader, root.ID))(t); n != 1 {
		t.Errorf("%d delegations", n)
	}
	differ(t, "delegated turns", storetest.Must(factrows.Delegated(t.Context(), s.Reader, root.ID))(t), []*msg.Turn{want})
	if n := storetest.Must(rows.CountDelegations(t.Context(), s.Reader, want.ID))(t); n != 0 {
		t.Errorf("%d delegations of the delegated", n)
	}
	if got, err := s.Turn(t.Context(), 4711); got != nil || err != nil {
		t.Errorf("no such turn: %+v, %v", got, err)
	}
}

func TestPutTurn_LiveRun_TakesIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second, third := gatedtest.Piped(t, s, run), gatedtest.Piped(t, s, run)
	for i, got := range []*msg.Turn{second, third} {
		if got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != got.CreatedAt {
			t.Errorf("turn %d after the first: %+v", i, got)
		}
		differ(t, "stored", storetest.Turn(t, s, got.ID), got)
	}
	if got := turnIDs(storetest.Must(rows.RunTurns(t.Context(), s.Reader, run.ID))(t)); !slices.Equal(got, []int64{first.ID, second.ID, third.ID}) {
		t.Errorf("unanswered turns of the run: %v", got)
	}

	for _, turn := range []*msg.Turn{first, second, third} {
		gatedtest.StoreReply(t, s, gatedtest.Answer(run, turn, "ok"), 300)
	}
	if idle := gatedtest.Piped(t, s, run); idle.State != msg.TurnRunning {
		t.Errorf("for an idle run: %+v", idle)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CloseRun(tx, run.ID, 400) })
	if late := gatedtest.Piped(t, s, run); late.State != msg.TurnQueued || late.RunID != 0 {
		t.Errorf("for a closed run: %+v", late)
	}
}

// put stores a turn as gated does, for at most two busy runs.
func put(t *testing.T, s *store.Store, set ...func(*msg.Turn)) (turn *msg.Turn, joined bool) {
	t.Helper()
	turn = &msg.Turn{
		Kind: msg.Conversation, Folder: storetest.Folder, ChatJID: storetest.Chat, Place: "place", ThreadID: "thread", ReplyTo: "native",
		Surface: "telegram-group", Ceiling: 1500, CreatedAt: 150, RowCount: 1, RowBytes: 10,
	}
	for _, f := range set {
		f(turn)
	}
	if turn.TriggerMessageID == 0 {
		turn.TriggerMessageID = storetest.Inbound(t, s, turn.ChatJID, "hello").ID
	}
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		joined, err = rows.PutTurn(tx, turn, 2)
		return err
	})
	return turn, joined
}

// TestPutTurn_LiveRun_DoesNotTakeIt has the reasons that keep a turn from the live run of its
// address.
func TestPutTurn_LiveRun_DoesNotTakeIt(t *testing.T) {
	t.Parallel()
	other := func(name string) func(*msg.Turn) {
		return func(turn *msg.Turn) { turn.Folder, turn.ChatJID = name, "telegram:-"+name }
	}
	exec := func(query string) func(*testing.T, *store.Store) {
		return func(t *testing.T, s *store.Store) {
			t.Helper()
			storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(query) })
		}
	}
	idle := func(t *testing.T, s *store.Store) {
		t.Helper()
		first := storetest.Turn(t, s, 1)
		gatedtest.StoreReply(t, s, gatedtest.Answer(&msg.Run{ID: first.RunID}, first, "ok"), 300)
	}
	busy := func(t *testing.T, s *store.Store) {
		t.Helper()
		gatedtest.Begun(t, s, gatedtest.Queued(t, s, other("b")))
		gatedtest.Begun(t, s, gatedtest.Queued(t, s, other("c")))
	}
	tests := []struct {
		name  string
		given []func(*testing.T, *store.Store)
		set   func(*msg.Turn)
		taken bool
	}{
		{name: "busy"},
		{name: "idle", taken: true, given: []func(*testing.T, *store.Store){idle}},
		{name: "another thread", given: []func(*testing.T, *store.Store){idle}, set: func(turn *msg.Turn) { turn.ThreadID = "" }},
		{name: "another chat", given: []func(*testing.T, *store.Store){idle}, set: func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" }},
		{name: "another topic", given: []func(*testing.T, *store.Store){idle}, set: func(turn *msg.Turn) { turn.Topic = "#x" }},
		{name: "another place", given: []func(*testing.T, *store.Store){idle}, set: func(turn *msg.Turn) { turn.Place = "elsewhere" }, taken: true},
		{name: "delegated", given: []func(*testing.T, *store.Store){idle}, set: func(turn *msg.Turn) { turn.Kind = msg.Delegated }},
		{name: "its files are pending", given: []func(*testing.T, *store.Store){idle}, set: func(turn *msg.Turn) { turn.WaitsFor, turn.NotBefore = msg.WaitsFiles, 60_000 }},
		{name: "the run drains", given: []func(*testing.T, *store.Store){idle, exec(`UPDATE runs SET draining = 1`)}},
		{name: "the run is closed", given: []func(*testing.T, *store.Store){idle, exec(`UPDATE runs SET closed_at = 300`)}},
		{name: "the group fails", given: []func(*testing.T, *store.Store){idle,
			exec(`INSERT INTO group_failures (folder, problem, count, since) VALUES ('acme', 'x', 3, 1)`),
		}},
		{name: "a turn of the lane waits", given: []func(*testing.T, *store.Store){idle, func(t *testing.T, s *store.Store) {
			gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
		}}},
		{name: "another lane waits, and a slot is free", taken: true, given: []func(*testing.T, *store.Store){idle, func(t *testing.T, s *store.Store) {
			gatedtest.Queued(t, s, other("b"))
		}}},
		{name: "idle, and no slot is free", given: []func(*testing.T, *store.Store){idle, busy}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			run := gatedtest.Begun(t, s, gatedtest.Queued(t, s))
			for _, f := range tt.given {
				f(t, s)
			}
			if tt.set == nil {
				tt.set = func(*msg.Turn) {}
			}
			got, joined := put(t, s, tt.set)
			if joined || (got.RunID == run.ID && got.State == msg.TurnRunning) != tt.taken || got.RunID == 0 && got.State != msg.TurnQueued {
				t.Errorf("joined %t, %+v", joined, got)
			}
		})
	}
}

func TestPutTurn_QueuedTurn_TakesInNewerRows(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	oldest, _ := put(t, s)
	mention := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbMention}).ID
	asked, joined := put(t, s, func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ReplyTo, turn.ClaimsEngagement, turn.Ceiling = mention, "mention", true, 4000
	})
	if !joined || asked.ID != oldest.ID {
		t.Fatalf("joined %t, turn %d", joined, asked.ID)
	}
	_, joined = put(t, s, func(turn *msg.Turn) { turn.WaitsFor, turn.NotBefore, turn.CreatedAt = msg.WaitsFiles, 60_000, 160 })
	if !joined {
		t.Error("a row with files made a turn of its own")
	}
	// The turn waits no longer for files that come later.
	photo, joined := put(t, s, func(turn *msg.Turn) { turn.WaitsFor, turn.NotBefore, turn.CreatedAt = msg.WaitsFiles, 110_000, 50_160 })
	if !joined {
		t.Error("a second row with files made a turn of its own")
	}
	want := *oldest
	want.TriggerMessageID, want.ReplyTo, want.ClaimsEngagement, want.Ceiling = mention, "mention", true, 4000
	want.RowCount, want.RowBytes, want.WaitsFor, want.NotBefore = 4, 40, msg.WaitsFiles, 60_000
	differ(t, "joined turn", photo, &want)
	differ(t, "stored turn", storetest.Turn(t, s, oldest.ID), &want)
}

func TestPutTurn_QueuedTurn_TakesNothingIn(t *testing.T) {
	t.Parallel()
	exec := func(query string) func(*testing.T, *store.Store) {
		return func(t *testing.T, s *store.Store) {
			t.Helper()
			storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(query) })
		}
	}
	tests := []struct {
		name  string
		given func(*testing.T, *store.Store)
		set   func(*msg.Turn)
	}{
		{name: "another thread", set: func(turn *msg.Turn) { turn.ThreadID = "other" }},
		{name: "another place", set: func(turn *msg.Turn) { turn.Place = "other" }},
		{name: "another topic", set: func(turn *msg.Turn) { turn.Topic = "#x" }},
		{name: "another chat", set: func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" }},
		{name: "another group", set: func(turn *msg.Turn) { turn.Folder = "other" }},
		{name: "an answer to an escalation", set: func(turn *msg.Turn) { turn.Depth, turn.RootTurnID = 1, 1 }},
		{name: "delegated", set: func(turn *msg.Turn) { turn.Kind = msg.Delegated }},
		{name: "a broadcast", set: func(turn *msg.Turn) { turn.Kind = msg.Broadcast }},
		{name: "size unknown", set: func(turn *msg.Turn) { turn.RowCount = 0 }},
		{name: "too many rows", set: func(turn *msg.Turn) { turn.RowCount = 100 }},
		{name: "too many bytes", set: func(turn *msg.Turn) { turn.RowBytes = 256 << 10 }},
		{name: "of unknown size", given: exec(`UPDATE turns SET row_count = 0`)},
		{name: "in backoff", given: exec(`UPDATE turns SET attempts = 1, waits_for = 'retry', not_before = 5000`)},
		{name: "waits for the machine", given: exec(`UPDATE turns SET waits_for = 'machine', not_before = 5000`)},
		{name: "has been started", given: exec(`UPDATE turns SET started_at = 120`)},
		{name: "is about to be stopped", given: exec(`INSERT INTO stops (chat_jid, before_message, through_turn, created_at) VALUES ('` + storetest.Chat + `', 99, 1, 1)`)},
		{name: "is not the newest of the conversation", given: func(t *testing.T, s *store.Store) {
			t.Helper()
			put(t, s, func(turn *msg.Turn) { turn.ThreadID = "between" })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			put(t, s)
			if tt.given != nil {
				tt.given(t, s)
			}
			if tt.set == nil {
				tt.set = func(*msg.Turn) {}
			}
			if got, joined := put(t, s, tt.set); joined || got.ID == 1 {
				t.Errorf("it joined: %+v", got)
			}
		})
	}
}
