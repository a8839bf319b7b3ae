package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestPutTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	root := queued(t, s)
	want := &msg.Turn{
		Kind: msg.Delegated, Folder: "acme/eng", ChatJID: chat, Topic: "#d7", ThreadID: "thread", Place: "place",
		ReplyTo: "native", TriggerMessageID: root.TriggerMessageID, ClaimsEngagement: true, Surface: "group", Ceiling: 4000,
		Depth: 1, RootTurnID: root.ID, CreatedAt: 5,
	}
	write(t, s, func(tx *store.Tx) error { return tx.PutTurn(want, 0) })
	if want.State != msg.TurnQueued || want.ID == 0 {
		t.Errorf("stored as %+v", want)
	}
	if diff := cmp.Diff(want, turn(t, s, want.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := must(s.CountDelegations(t.Context(), root.ID))(t); n != 1 {
		t.Errorf("%d delegations", n)
	}
	if diff := cmp.Diff([]*msg.Turn{want}, must(s.Delegated(t.Context(), root.ID))(t)); diff != "" {
		t.Errorf("delegated turns (-want +got):\n%s", diff)
	}
	if n := must(s.CountDelegations(t.Context(), want.ID))(t); n != 0 {
		t.Errorf("%d delegations of the delegated", n)
	}
	if got, err := s.Turn(t.Context(), 4711); got != nil || err != nil {
		t.Errorf("no such turn: %+v, %v", got, err)
	}
}

func TestPutTurn_PokesTheAdapter_AndRoutdForAClaim(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 10)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) {
		if daemon != "gated" { // for the rows
			pokes <- daemon
		}
	})
	queued(t, s)
	queued(t, s, func(turn *msg.Turn) { turn.ClaimsEngagement = true })
	write(t, s, func(tx *store.Tx) error { tx.Poke("the end"); return nil })
	for _, want := range []string{"teled", "routd", "teled", "the end"} {
		if got := receive(t, "a poke", pokes); got != want {
			t.Errorf("poked %s, want %s", got, want)
		}
	}
}

func TestPutTurn_LiveRun_IsAssigned(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	second, third := offered(t, s, run), offered(t, s, run)
	for i, got := range []*msg.Turn{second, third} {
		if got.State != msg.TurnOffered || got.RunID != run.ID || got.StartedAt != 0 {
			t.Errorf("turn %d after the first: %+v", i, got)
		}
		if diff := cmp.Diff(got, turn(t, s, got.ID)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	}
	if got := turnIDs(must(s.RunTurns(t.Context(), run.ID))(t)); !slices.Equal(got, []int64{first.ID, second.ID, third.ID}) {
		t.Errorf("unanswered turns of the run: %v", got)
	}

	for _, turn := range []*msg.Turn{first, second, third} {
		reply(t, s, answer(run, turn, "ok"), 300)
	}
	idle := offered(t, s, run)
	if idle.State != msg.TurnRunning || idle.StartedAt != idle.CreatedAt {
		t.Errorf("for an idle run: %+v", idle)
	}

	write(t, s, func(tx *store.Tx) error { return tx.CloseRun(run.ID, 400) })
	late := offered(t, s, run)
	if late.State != msg.TurnQueued || late.RunID != 0 {
		t.Errorf("for a closed run: %+v", late)
	}
}

func TestOfferTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	next := queued(t, s)
	offer := func(id, runID int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.OfferTurn(id, runID, 250) }
	}
	write(t, s, offer(next.ID, run.ID))
	if got := turn(t, s, next.ID); got.State != msg.TurnOffered || got.RunID != run.ID {
		t.Errorf("%+v", got)
	}
	refused(t, s, "offered already", offer(next.ID, run.ID))
	refused(t, s, "no such turn", offer(4711, run.ID))
	other := queued(t, s)
	refused(t, s, "no such run", offer(other.ID, 4711))
	write(t, s, func(tx *store.Tx) error { return tx.CloseRun(run.ID, 300) })
	refused(t, s, "closed run", offer(other.ID, run.ID))
	if diff := cmp.Diff(other, turn(t, s, other.ID)); diff != "" {
		t.Errorf("a refused offer changed the turn (-want +got):\n%s", diff)
	}
}

func TestRequeueTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	requeue := func(attempt bool) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.RequeueTurn(first.ID, attempt, "broke", 5000) }
	}
	write(t, s, requeue(true))
	want := *first
	want.Attempts, want.Error, want.NotBefore, want.StartedAt = 1, "broke", 5000, run.StartedAt
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
	write(t, s, func(tx *store.Tx) error { return tx.RequeueTurn(backoff.ID, true, "broke", 5000) })
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

func TestCancelChatTurns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inTopic := func(topic string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Topic = topic } }
	ofFolder := func(folder string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Folder = folder } }
	elsewhere := queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	running := queued(t, s, inTopic("#a"))
	run := begun(t, s, running)
	piped := offered(t, s, run)
	plain, other, guest := queued(t, s), queued(t, s, inTopic("#b")), queued(t, s, ofFolder("else"))
	done := queued(t, s, inTopic("#c"))
	reply(t, s, answer(begun(t, s, done), done, "ok"), 300)

	cancel := func(topic *string) (cancelled []*msg.Turn) {
		t.Helper()
		write(t, s, func(tx *store.Tx) (err error) {
			cancelled, err = tx.CancelChatTurns(chat, topic, 500)
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

func TestTurns_Filters(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	a, b := queued(t, s), queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	c := queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(a.ID, msg.ReasonCancelled, 1) })
	tests := []struct {
		state msg.TurnState
		chat  string
		limit int
		want  []int64
	}{
		{"", "", 10, []int64{c.ID, b.ID, a.ID}},
		{"", "", 2, []int64{c.ID, b.ID}},
		{msg.TurnQueued, "", 10, []int64{c.ID, b.ID}},
		{"", chat, 10, []int64{c.ID, a.ID}},
		{"", chat, 1, []int64{c.ID}},
		{msg.TurnCancelled, chat, 10, []int64{a.ID}},
		{msg.TurnCancelled, "telegram:-2", 10, nil},
	}
	for _, tt := range tests {
		if got := turnIDs(must(s.Turns(t.Context(), tt.state, tt.chat, tt.limit))(t)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestShownUptoLastTurnAtLastHome(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := must(s.LastHome(t.Context(), chat))(t); got != "" {
		t.Errorf("home %q", got)
	}
	if got := must(s.ShownUpto(t.Context(), folder, ""))(t); got != 0 {
		t.Errorf("shown up to %d", got)
	}
	done := queued(t, s)
	run := begun(t, s, done)
	frame := answer(run, done, "ok")
	frame.ObservedUpto = 7
	reply(t, s, frame, 300)
	partial := offered(t, s, run)
	reply(t, s, store.Reply{RunID: run.ID, TurnID: partial.ID, Text: "part", ObservedUpto: 9}, 310)
	if got := must(s.ShownUpto(t.Context(), folder, ""))(t); got != 7 {
		t.Errorf("shown up to %d while the next turn runs", got)
	}
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(turn(t, s, partial.ID), msg.TurnDone, msg.ReasonInterrupted, "", 320)
	})
	failing := offered(t, s, run)
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(failing, msg.TurnFailed, msg.ReasonAgentError, "broke", 330)
	})
	if got := must(s.ShownUpto(t.Context(), folder, ""))(t); got != 9 {
		t.Errorf("shown up to %d, want the value of the last done turn", got)
	}
	if got := must(s.ShownUpto(t.Context(), folder, "#else"))(t); got != 0 {
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
