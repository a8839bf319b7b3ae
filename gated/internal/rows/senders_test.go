package rows_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestLastStaleAt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	stale := store.Decision{Disposition: msg.Observed, Reason: msg.ReasonStale, RoutedTo: storetest.Folder}
	for i, d := range []store.Decision{stale, stale, {Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}} {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, ReceivedAt: int64(100 * (i + 1))})
		storetest.Decide(t, s, m.ID, d)
	}
	if at := storetest.Must(rows.LastStaleAt(t.Context(), s.Reader, storetest.Chat))(t); at != 200 {
		t.Errorf("last stale row at %d, want 200", at)
	}
	if at := storetest.Must(rows.LastStaleAt(t.Context(), s.Reader, "telegram:-2"))(t); at != 0 {
		t.Errorf("another chat's: %d", at)
	}
}

// said stores a row of a sender that was decided at a time, in unix ms.
func said(t *testing.T, s *store.Store, at int64, sender string, d store.Decision, set ...func(*msg.Message)) {
	t.Helper()
	m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: sender, Verb: msg.VerbMessage}
	for _, f := range set {
		f(m)
	}
	storetest.Stored(t, s, m)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Decide(m.ID, d, at) })
}

func TestRecentTurns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first, second := gatedtest.Queued(t, s), gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = "#b" })
	into := func(turn *msg.Turn) store.Decision {
		return store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: turn.ID}
	}
	said(t, s, 100, "a:1", into(first))
	said(t, s, 200, "a:1", into(first))
	said(t, s, 300, "a:2", into(first))
	said(t, s, 400, "a:1", store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: storetest.Folder})
	said(t, s, 500, "a:1", store.Decision{Disposition: msg.Routed, Reason: msg.ReasonDelegated, RoutedTo: storetest.Folder, TurnID: first.ID},
		func(m *msg.Message) {
			m.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, Folder: "else", ChatJID: storetest.Chat, RootTurnID: first.ID}
		})
	said(t, s, 600, "a:1", store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "else", TurnID: first.ID})
	said(t, s, 700, "a:1", into(second))
	said(t, s, 800, "agent:else", into(second), func(m *msg.Message) { // on behalf of another one
		m.OnBehalfOf, m.ForwardedFrom = "a:3", &msg.ReturnAddress{Kind: msg.Injection, RootTurnID: first.ID}
	})
	for since, want := range map[int64][]rows.SenderTurn{
		0:   {{"a:1", first.ID, 100}, {"a:1", first.ID, 200}, {"a:2", first.ID, 300}, {"a:1", second.ID, 700}, {"a:3", second.ID, 800}},
		200: {{"a:2", first.ID, 300}, {"a:1", second.ID, 700}, {"a:3", second.ID, 800}},
		800: nil,
	} {
		got := slices.DeleteFunc(storetest.Must(rows.RecentTurns(t.Context(), s.Reader, storetest.Folder, since))(t), func(st rows.SenderTurn) bool {
			return st.Sender == "telegram:7" // of the rows that the turns began with
		})
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("since %d (-want +got):\n%s", since, diff)
		}
	}
}

func TestLastRateLimit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	limited := store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonRateLimit}
	said(t, s, 100, "a:1", limited)
	said(t, s, 200, "a:1", limited)
	said(t, s, 300, "a:1", limited, func(m *msg.Message) { m.Verb = msg.VerbReaction })
	said(t, s, 400, "a:2", limited)
	said(t, s, 500, "a:1", store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	said(t, s, 600, "a:1", limited, func(m *msg.Message) { m.ChatJID = "slack:C1" })
	for sender, want := range map[string]int64{"a:1": 200, "a:2": 400, "a:3": 0} {
		if at := storetest.Must(rows.LastRateLimit(t.Context(), s.Reader, storetest.Chat, sender))(t); at != want {
			t.Errorf("%s: %d, want %d", sender, at, want)
		}
	}
}

func TestFoldersOfSender(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	of := func(sender string) (folders []string, used bool) {
		folders, used, err := rows.FoldersOfSender(t.Context(), s.Reader, storetest.Chat, sender)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(folders)
		return folders, used
	}
	said(t, s, 1, "a:1", store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: storetest.Folder})
	if folders, used := of("a:1"); folders != nil || used {
		t.Errorf("observed: %v, %v", folders, used)
	}
	turn := gatedtest.Queued(t, s)
	for _, to := range []string{storetest.Folder, storetest.Folder, "else"} {
		said(t, s, 1, "a:1", store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: to, TurnID: turn.ID})
	}
	if folders, used := of("a:1"); !slices.Equal(folders, []string{storetest.Folder, "else"}) || !used {
		t.Errorf("%v, %v", folders, used)
	}
	if folders, used := of("a:2"); folders != nil || !used {
		t.Errorf("another sender: %v, %v", folders, used)
	}
}
