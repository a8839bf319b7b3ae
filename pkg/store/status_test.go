package store_test

import (
	"context"
	"slices"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func(chatJID string, direction msg.Direction, state msg.OutState, receivedAt int64) int64 {
		return stored(t, s, &msg.Message{ChatJID: chatJID, Direction: direction, OutState: state, ReceivedAt: receivedAt}).ID
	}
	verbs := map[string]func(context.Context) (store.Waiting, error){
		"inbound":            s.WaitingInbound,
		"in a before 20":     func(ctx context.Context) (store.Waiting, error) { return s.WaitingInboundBefore(ctx, "a:1", 20) },
		"in a before 5":      func(ctx context.Context) (store.Waiting, error) { return s.WaitingInboundBefore(ctx, "a:1", 5) },
		"nowhere":            func(ctx context.Context) (store.Waiting, error) { return s.WaitingInboundBefore(ctx, "a:", 1000) },
		"outbound":           s.WaitingOutbound,
		"in b before it all": func(ctx context.Context) (store.Waiting, error) { return s.WaitingInboundBefore(ctx, "b:1", 1000) },
	}
	expect := func(want map[string]store.Waiting) {
		t.Helper()
		for name, verb := range verbs {
			if got := must(verb(t.Context()))(t); got != want[name] {
				t.Errorf("%s: %+v, want %+v", name, got, want[name])
			}
		}
	}
	expect(nil)

	decided := put("a:1", msg.In, "", 5)
	decide(t, s, decided, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	for _, state := range []msg.OutState{"", msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled} {
		put("a:1", msg.Out, state, 5)
	}
	expect(nil)

	b := put("b:1", msg.In, "", 30)
	a := put("a:1", msg.In, "", 10)
	put("a:1", msg.In, "", 20)
	put("a:1", msg.In, "", 21)
	sending := put("c:1", msg.Out, msg.OutSending, 40)
	put("a:1", msg.Out, msg.OutQueued, 39)
	expect(map[string]store.Waiting{
		"inbound":            {4, b, "b:1", 30},
		"in a before 20":     {2, a, "a:1", 10},
		"in b before it all": {1, b, "b:1", 30},
		"outbound":           {2, sending, "c:1", 40},
	})
}

func TestOpenTurns_CountedAndListed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	other := queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	run := begun(t, s, first)
	second, third := queued(t, s), queued(t, s)
	begunAt := must(s.Turn(t.Context(), first.ID))(t).StartedAt
	expect := func(want store.OpenTurnCount) {
		t.Helper()
		if got := must(s.CountOpenTurns(t.Context(), chat, "", "", 100))(t); got != want {
			t.Errorf("open are %+v, want %+v", got, want)
		}
	}
	lists := func(running, queued []int64) {
		t.Helper()
		oldest, count, err := s.RunningTurns(t.Context(), 1)
		if err != nil || count != len(running) || !slices.Equal(turnIDs(oldest), running[:min(1, count)]) {
			t.Errorf("running %v of %d, %v; want %v", turnIDs(oldest), count, err, running)
		}
		oldest, count, err = s.QueuedTurns(t.Context(), 1)
		if err != nil || count != len(queued) || !slices.Equal(turnIDs(oldest), queued[:min(1, count)]) {
			t.Errorf("queued %v of %d, %v; want %v", turnIDs(oldest), count, err, queued)
		}
	}
	expect(store.OpenTurnCount{Open: 3, Running: 1, Begun: begunAt, Oldest: first.ID})
	lists([]int64{first.ID}, []int64{other.ID, second.ID, third.ID})
	reply(t, s, answer(run, first, "done"), 300)
	expect(store.OpenTurnCount{Open: 2, Oldest: second.ID})
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(second.ID, msg.ReasonCancelled, 300) })
	expect(store.OpenTurnCount{Open: 1, Oldest: third.ID})
	lists(nil, []int64{other.ID, third.ID})
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(third.ID, msg.ReasonCancelled, 300) })
	expect(store.OpenTurnCount{})
}

func TestCountOpenTurns_ThreadOrPlace(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	thread := queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Place = "7", "7" })
	fork := queued(t, s, func(turn *msg.Turn) { turn.Place = "#fix" })
	running := queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.Place = "#a", "#a" })
	begun(t, s, running)
	for _, tt := range []struct {
		thread, place string
		open          int
		oldest        int64
	}{{"", "", 3, thread.ID}, {"7", "", 1, thread.ID}, {"", "#fix", 1, fork.ID}, {"8", "", 0, 0}, {"", "#none", 0, 0}} {
		if got := must(s.CountOpenTurns(t.Context(), chat, tt.thread, tt.place, 100))(t); got.Open != tt.open || got.Oldest != tt.oldest {
			t.Errorf("thread %q, place %q: %+v", tt.thread, tt.place, got)
		}
	}
	if got := must(s.CountOpenTurns(t.Context(), chat, "", "", 2))(t); got.Open != 2 || got.Running != 1 || got.Oldest != thread.ID {
		t.Errorf("up to 2: %+v", got)
	}
	if got := must(s.RunningPlaces(t.Context(), chat))(t); !slices.Equal(got, []string{"#a"}) {
		t.Errorf("running in %q", got)
	}
	if got := must(s.RunningPlaces(t.Context(), "telegram:-3"))(t); got == nil || len(got) > 0 {
		t.Errorf("in a chat without turns: %#v", got)
	}
}

func TestQueuedBefore(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	running := queued(t, s)
	begun(t, s, running)
	cancelled := queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(cancelled.ID, msg.ReasonCancelled, 300) })
	first := queued(t, s)
	inBackoff := queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(inBackoff.ID, store.Requeue{Attempt: true, Problem: "broke", NotBefore: 500})
	})
	last := queued(t, s)
	for _, tt := range []struct {
		turn, now int64
		want      int
	}{
		{first.ID, 499, 0}, {inBackoff.ID, 499, 1}, {last.ID, 499, 1}, {last.ID, 500, 2}, {noID, 500, 3},
	} {
		if got := must(s.QueuedBefore(t.Context(), tt.turn, tt.now))(t); got != tt.want {
			t.Errorf("before turn %d at %d: %d, want %d", tt.turn, tt.now, got, tt.want)
		}
	}
}

func TestMinutes_CountsRowsByMinute(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const start = int64(1_700_000_040_000)
	for _, at := range []int64{start - 1, start, start + 59_999, start + 60_000, start + 180_000} {
		stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Content: "x", ReceivedAt: at})
	}
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Content: "y", OutState: msg.OutQueued, ReceivedAt: start + 1})
	got, all, err := s.Minutes(t.Context(), start, 3)
	if want := []store.Minute{{In: 2, Out: 1}, {In: 1}, {}}; err != nil || !all || !slices.Equal(got, want) {
		t.Errorf("%v, all %t, %v", got, all, err)
	}
}
