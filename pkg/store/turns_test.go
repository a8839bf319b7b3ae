package store_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// refused runs a write that must return ErrStale.
func refused(t *testing.T, s *store.Store, what string, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); !errors.Is(err, store.ErrStale) {
		t.Errorf("%s: error %v, want ErrStale", what, err)
	}
}

func turnIDs(turns []*msg.Turn) (all []int64) {
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}

func TestTakeTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	next := queued(t, s)
	take := func(id, runID int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.TakeTurn(id, runID, 250) }
	}
	write(t, s, take(next.ID, run.ID))
	if got := turn(t, s, next.ID); got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != 250 {
		t.Errorf("%+v", got)
	}
	refused(t, s, "taken already", take(next.ID, run.ID))
	refused(t, s, "no such turn", take(4711, run.ID))
	other := queued(t, s)
	refused(t, s, "no such run", take(other.ID, 4711))
	retried := queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.RequeueTurn(retried.ID, store.Requeue{Attempt: true}) })
	refused(t, s, "it is retried alone", take(retried.ID, run.ID))
	waiting := queued(t, s)
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(waiting.ID, store.Requeue{WaitsFor: msg.WaitsFiles, NotBefore: 60_000})
	})
	refused(t, s, "its files are pending", take(waiting.ID, run.ID))
	write(t, s, func(tx *store.Tx) error { return tx.DrainRun(run.ID) })
	refused(t, s, "the run drains", take(other.ID, run.ID))
	write(t, s, func(tx *store.Tx) error { return tx.CloseRun(run.ID, 300) })
	refused(t, s, "closed run", take(other.ID, run.ID))
	if diff := cmp.Diff(other, turn(t, s, other.ID)); diff != "" {
		t.Errorf("a refusal changed the turn (-want +got):\n%s", diff)
	}
}

func TestDrainIdleRun(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	drain := func() (drained bool) {
		t.Helper()
		write(t, s, func(tx *store.Tx) (err error) {
			drained, err = tx.DrainIdleRun(run.ID)
			return err
		})
		return drained
	}
	if drain() {
		t.Error("a run with a turn drains")
	}
	reply(t, s, answer(run, first, "ok"), 300)
	if !drain() {
		t.Error("an idle run does not drain")
	}
	if got := piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("a draining run took turn %+v", got)
	}
}

func TestRequeueTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	requeue := func(attempt bool) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return tx.RequeueTurn(first.ID, store.Requeue{
				Attempt: attempt, WaitsFor: msg.WaitsRetry, NotBefore: 5000, Kind: msg.ErrorSession, Problem: "broke",
			})
		}
	}
	write(t, s, requeue(true))
	want := *first
	want.Attempts, want.Error, want.NotBefore, want.StartedAt = 1, "broke", 5000, run.StartedAt
	want.WaitsFor, want.ErrorKind = msg.WaitsRetry, msg.ErrorSession
	if diff := cmp.Diff(&want, turn(t, s, first.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write(t, s, requeue(false))
	if got := turn(t, s, first.ID); got.Attempts != 1 {
		t.Errorf("an attempt was counted: %+v", got)
	}
	refused(t, s, "a frame of the run it was taken from", func(tx *store.Tx) error {
		return tx.AnswerTurn(answer(run, first, "late"), 300)
	})
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(first.ID, msg.ReasonCancelled, 400) })
	refused(t, s, "an ended turn", requeue(false))
}

func TestReviveTurn(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	revive := func(id int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.ReviveTurn(id) }
	}
	fresh := queued(t, s)
	refused(t, s, "queued", revive(fresh.ID))
	refused(t, s, "no such turn", revive(4711))

	failed := queued(t, s)
	run := begun(t, s, failed)
	refused(t, s, "running", revive(failed.ID))
	reply(t, s, store.Reply{RunID: run.ID, TurnID: failed.ID, Text: "part", ObservedUpto: 1}, 250)
	write(t, s, func(tx *store.Tx) error {
		if err := tx.FinishTurn(failed, msg.TurnFailed, msg.ReasonAgentError, "broke", 300); err != nil {
			return err
		}
		return tx.EndRun(run.ID, "broke", 300)
	})
	backoff := queued(t, s)
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(backoff.ID, store.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, Problem: "broke", NotBefore: 5000})
	})
	cancelled := queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(cancelled.ID, msg.ReasonCancelled, 300) })
	for len(pokes) > 0 {
		<-pokes
	}
	for _, want := range []*msg.Turn{failed, backoff, cancelled} {
		write(t, s, revive(want.ID))
		got := turn(t, s, want.ID)
		got.ObservedUpto = 0 // of no account before it is done
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("revived (-want +got):\n%s", diff)
		}
		eventually(t, "gated to be poked", func() bool { return receive(t, "a poke", pokes) == "gated" })
	}

	run = begun(t, s, fresh)
	reply(t, s, answer(run, fresh, "done"), 300)
	refused(t, s, "done", revive(fresh.ID))
}

func TestCancelTurn_CancelsUnsentReplies(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	for range 3 {
		reply(t, s, store.Reply{RunID: run.ID, TurnID: first.ID, Text: "part"}, 300)
	}
	replies := must(s.TurnReplies(t.Context(), first.ID))(t)
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = CASE id WHEN ? THEN 'sent' ELSE 'sending' END WHERE id IN (?, ?)`,
			replies[0].ID, replies[0].ID, replies[1].ID)
	})
	cancel := func(tx *store.Tx) error { return tx.CancelTurn(first.ID, msg.ReasonCancelled, 400) }
	write(t, s, cancel)
	want := []msg.OutState{msg.OutSent, msg.OutSending, msg.OutCancelled}
	for i, m := range must(s.TurnReplies(t.Context(), first.ID))(t) {
		if m.OutState != want[i] {
			t.Errorf("reply %d is %s, want %s", i, m.OutState, want[i])
		}
	}
	if got := turn(t, s, first.ID); got.State != msg.TurnCancelled || got.Reason != msg.ReasonCancelled || got.EndedAt != 400 {
		t.Errorf("%+v", got)
	}
	refused(t, s, "cancelled already", cancel)
	refused(t, s, "a frame for it", func(tx *store.Tx) error { return tx.AnswerTurn(answer(run, first, "late"), 500) })
	if n := len(must(s.TurnReplies(t.Context(), first.ID))(t)); n != 3 {
		t.Errorf("%d replies", n)
	}
}

func TestStopChat_CancelsOpenTurns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inTopic := func(topic string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Topic = topic } }
	ofFolder := func(folder string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Folder = folder } }
	elsewhere := queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	running := queued(t, s, inTopic("#a"))
	run := begun(t, s, running)
	piped := piped(t, s, run)
	plain, other, guest := queued(t, s), queued(t, s, inTopic("#b")), queued(t, s, ofFolder("else"))
	done := queued(t, s, inTopic("#c"))
	reply(t, s, answer(begun(t, s, done), done, "ok"), 300)

	cancel := func(topic *string) (cancelled []*msg.Turn) {
		t.Helper()
		write(t, s, func(tx *store.Tx) (err error) {
			cancelled, _, err = tx.StopChat(store.Stop{ChatJID: chat, Topic: topic}, 500)
			return err
		})
		return cancelled
	}
	topic := "#a"
	got := cancel(&topic)
	if !slices.Equal(turnIDs(got), []int64{running.ID, piped.ID}) || got[0].State != msg.TurnRunning || got[0].RunID != run.ID {
		t.Errorf("of a topic: %v", turnIDs(got))
	}
	if got := turnIDs(cancel(nil)); !slices.Equal(got, []int64{plain.ID, other.ID, guest.ID}) {
		t.Errorf("of the chat: %v", got)
	}
	if got := cancel(nil); got != nil {
		t.Errorf("again: %v", turnIDs(got))
	}
	open := must(s.OpenTurns(t.Context()))(t)
	if !slices.Equal(turnIDs(open), []int64{elsewhere.ID}) {
		t.Errorf("open: %v", turnIDs(open))
	}
	if got := turn(t, s, done.ID); got.State != msg.TurnDone {
		t.Errorf("the done turn is %s", got.State)
	}
}

// A /stop ends the turns of its own thread. Outside of threads it also ends what its sender asked for there, and is
// answered in a thread that begins at the question.
func TestStopChat_OneThread_KeepsTheOthers(t *testing.T) {
	t.Parallel()
	const ann, bob = "slack:U1", "slack:U2"
	for name, tc := range map[string]struct {
		thread, by string
		want       []string
	}{
		"of a thread":                   {"7", bob, []string{"in 7"}},
		"of the thread of a question":   {"9", bob, []string{"ann's"}},
		"of no thread":                  {"", "slack:U3", []string{"in none"}},
		"of no thread, by ann":          {"", ann, []string{"in none", "ann's"}},
		"of no thread, by bob":          {"", bob, []string{"in none"}},
		"of a thread without questions": {"99", ann, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			names := map[int64]string{}
			put := func(name, thread, sender, post string) {
				m := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Sender: sender, PlatformID: post, ThreadID: thread})
				turn := queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Topic, turn.TriggerMessageID = thread, name, m.ID })
				names[turn.ID] = name
			}
			put("in none", "", bob, "1")
			put("in 7", "7", ann, "2")
			put("in 8", "8", ann, "3")
			put("ann's", "9", ann, "9")
			var got []string
			write(t, s, func(tx *store.Tx) error {
				cancelled, _, err := tx.StopChat(store.Stop{ChatJID: chat, Thread: &tc.thread, By: tc.by}, 500)
				for _, t := range cancelled {
					got = append(got, names[t.ID])
				}
				return err
			})
			differ(t, "cancelled", got, tc.want)
		})
	}
}

func TestTurns_Filters(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	a, b := queued(t, s), queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	c := queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(a.ID, msg.ReasonCancelled, 1) })
	started := queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Folder = "telegram:-3", "started" })
	begun(t, s, started)
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
		{store.TurnList{ChatJID: chat, Limit: 10}, []int64{c.ID, a.ID}},
		{store.TurnList{ChatJID: chat, Limit: 1}, []int64{c.ID}},
		{store.TurnList{ChatJID: chat, Before: c.ID, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, ChatJID: chat, Limit: 10}, []int64{a.ID}},
		{store.TurnList{State: msg.TurnCancelled, ChatJID: "telegram:-2", Limit: 10}, nil},
		{store.TurnList{Folder: "started", Limit: 10}, []int64{started.ID}},
		{store.TurnList{Folder: "started", Before: started.ID, Limit: 10}, nil},
		{store.TurnList{Folder: a.Folder, Limit: 10}, nil}, // none has started
	}
	for _, tt := range tests {
		if got := turnIDs(must(s.Turns(t.Context(), tt.list))(t)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestLastAnsweredLastTurnAtLastHome(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := must(s.LastHome(t.Context(), chat))(t); got != "" {
		t.Errorf("home %q", got)
	}
	if got := must(s.LastAnswered(t.Context(), folder, "", math.MaxInt64))(t).ObservedUpto; got != 0 {
		t.Errorf("shown up to %d", got)
	}
	done := queued(t, s)
	run := begun(t, s, done)
	frame := answer(run, done, "ok")
	frame.ObservedUpto = 7
	reply(t, s, frame, 300)
	partial := piped(t, s, run)
	reply(t, s, store.Reply{RunID: run.ID, TurnID: partial.ID, Text: "part", ObservedUpto: 9}, 310)
	if got := must(s.LastAnswered(t.Context(), folder, "", math.MaxInt64))(t).ObservedUpto; got != 7 {
		t.Errorf("shown up to %d while the next turn runs", got)
	}
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(turn(t, s, partial.ID), msg.TurnDone, msg.ReasonInterrupted, "", 320)
	})
	failing := piped(t, s, run)
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(failing, msg.TurnFailed, msg.ReasonAgentError, "broke", 330)
	})
	if got := must(s.LastAnswered(t.Context(), folder, "", math.MaxInt64))(t).ObservedUpto; got != 9 {
		t.Errorf("shown up to %d, want the value of the last done turn", got)
	}
	if got := must(s.LastAnswered(t.Context(), folder, "", partial.ID))(t); got.ObservedUpto != 7 || got.EndedAt != 300 {
		t.Errorf("before turn %d: %+v", partial.ID, got)
	}
	if got := must(s.LastAnswered(t.Context(), folder, "#else", math.MaxInt64))(t).ObservedUpto; got != 0 {
		t.Errorf("another topic was shown up to %d", got)
	}

	waiting := queued(t, s)
	for id, want := range map[int64]int64{
		done.ID: failing.StartedAt, partial.ID: failing.StartedAt, failing.ID: partial.StartedAt, waiting.ID: failing.StartedAt,
	} {
		if got := must(s.LastTurnAt(t.Context(), folder, id))(t); got != want {
			t.Errorf("last turn other than %d began at %d, want %d", id, got, want)
		}
	}
	if got := must(s.LastHome(t.Context(), chat))(t); got != folder {
		t.Errorf("home %q", got)
	}
	queued(t, s, func(turn *msg.Turn) { turn.Folder = "else" })
	if got := must(s.LastHome(t.Context(), chat))(t); got != "else" {
		t.Errorf("home %q", got)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	put := func(run *msg.Run, text string) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return tx.PutProgress(*run, first.ID, &store.Progress{State: agentproto.StatusRunning, Text: text, UpdatedAt: 5})
		}
	}
	progress := func() *store.Progress {
		t.Helper()
		p, err := s.Progress(t.Context(), first.ID)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := progress(); p != nil {
		t.Errorf("before the first event: %+v", p)
	}
	write(t, s, put(run, "one"))
	write(t, s, put(run, "two"))
	want := &store.Progress{State: agentproto.StatusRunning, Text: "two", Plan: []agentproto.Step{}, Tools: []agentproto.Tool{}, UpdatedAt: 5}
	if diff := cmp.Diff(want, progress()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	refused(t, s, "another run", put(&msg.Run{ID: run.ID + 1}, "three"))
	write(t, s, func(tx *store.Tx) error { return tx.RequeueTurn(first.ID, store.Requeue{}) })
	if p := progress(); p != nil {
		t.Errorf("of a turn that is queued again: %+v", p)
	}
	refused(t, s, "a turn that is queued again", put(run, "late"))
}

func TestUsage_IsAdded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := queued(t, s)
	for _, u := range []agentproto.Usage{{Input: 5, Output: 1, ContextUsed: 6, ContextSize: 100, CostUSD: 0.25}, {Input: 1, CostUSD: 0.5}, {ContextUsed: 7}} {
		write(t, s, func(tx *store.Tx) error { return tx.AddUsage(turn.ID, u, "2026-11-23") })
	}
	got, err := s.Usage(t.Context(), turn.ID)
	if want := (agentproto.Usage{Input: 6, Output: 1, ContextUsed: 7, ContextSize: 100, CostUSD: 0.75}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// The notes of changed messages become a turn of their own, unless a later message is queued: it has them in order.
func TestPutNotes_LaterTurnQueued_LeavesThemToIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inChat := func(turn *msg.Turn) { turn.ThreadID, turn.Place = "", "" }
	first := queued(t, s, inChat)
	begun(t, s, first)
	running := must(s.Turn(t.Context(), first.ID))(t)
	note := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Verb: msg.VerbEdit, TargetID: "native-1"})
	decide(t, s, note.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: folder})
	later := queued(t, s, inChat)
	write(t, s, func(tx *store.Tx) error {
		notes, err := tx.PutNotes(running, 300)
		if notes != nil {
			t.Errorf("notes %+v beside the queued turn %d", notes, later.ID)
		}
		return err
	})
	write(t, s, func(tx *store.Tx) error { return tx.TakeTurn(later.ID, running.RunID, 300) })
	if m := must(s.Message(t.Context(), note.ID))(t); m.TurnID != later.ID {
		t.Errorf("the note is of turn %d, want %d", m.TurnID, later.ID)
	}
}
