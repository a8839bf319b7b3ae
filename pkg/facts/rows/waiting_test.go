package rows_test

import (
	"context"
	"testing"

	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func(chatJID string, direction msg.Direction, state msg.OutState, receivedAt int64) int64 {
		return storetest.Stored(t, s, &msg.Message{ChatJID: chatJID, Direction: direction, OutState: state, ReceivedAt: receivedAt}).ID
	}
	type count = func(ctx context.Context, r store.Reader, chatJID string, before int64) (rows.Waiting, error)
	counts := map[string]struct {
		of      count
		chatJID string
		before  int64
	}{
		"inbound":            {of: rows.Undecided},
		"in a before 20":     {rows.Undecided, "a:1", 20},
		"in a before 5":      {rows.Undecided, "a:1", 5},
		"nowhere":            {rows.Undecided, "a:", 1000},
		"in b before it all": {rows.Undecided, "b:1", 1000},
		"outbound":           {of: rows.Unsent},
		"to a before 39":     {rows.Unsent, "a:1", 39},
		"to c before 39":     {rows.Unsent, "c:1", 39},
	}
	expect := func(want map[string]rows.Waiting) {
		t.Helper()
		for name, c := range counts {
			if got := storetest.Must(c.of(t.Context(), s.Reader, c.chatJID, c.before))(t); got != want[name] {
				t.Errorf("%s: %+v, want %+v", name, got, want[name])
			}
		}
	}
	expect(nil)

	decided := put("a:1", msg.In, "", 5)
	storetest.Decide(t, s, decided, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	for _, state := range []msg.OutState{"", msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled} {
		put("a:1", msg.Out, state, 5)
	}
	expect(nil)

	b := put("b:1", msg.In, "", 30)
	a := put("a:1", msg.In, "", 10)
	put("a:1", msg.In, "", 20)
	put("a:1", msg.In, "", 21)
	sending := put("c:1", msg.Out, msg.OutSending, 40)
	queued := put("a:1", msg.Out, msg.OutQueued, 39)
	expect(map[string]rows.Waiting{
		"inbound":            {4, b, "b:1", 30},
		"in a before 20":     {2, a, "a:1", 10},
		"in b before it all": {1, b, "b:1", 30},
		"outbound":           {2, sending, "c:1", 40},
		"to a before 39":     {1, queued, "a:1", 39},
	})
}
