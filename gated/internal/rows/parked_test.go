package rows_test

import (
	"testing"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// fates returns "disposition/reason" of rows, "/" of undecided ones.
func fates(t testing.TB, s *store.Store, rows ...*msg.Message) (all []string) {
	t.Helper()
	for _, m := range rows {
		now := storetest.Must(s.Message(t.Context(), m.ID))(t)
		all = append(all, string(now.Disposition)+"/"+string(now.Reason))
	}
	return all
}

func TestParked_TakeUp_AreUndecidedInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, other := storetest.Park(t, s, storetest.Chat, "one"), storetest.Park(t, s, storetest.Chat, "two"), storetest.Park(t, s, "telegram:-2", "other")
	storetest.Write(t, s, func(tx *store.Tx) error {
		return storetest.PutRequest(tx, &factrows.Request{Code: "ABCD-1234", ChatJID: storetest.Chat, Kind: msg.ChatGroup, CreatedAt: 1})
	})
	differ(t, "chats", storetest.Must(rows.ParkedChats(t.Context(), s.Reader))(t), []rows.ParkedChat{{JID: storetest.Chat, Pending: true}, {JID: "telegram:-2"}})
	list := storetest.Must(rows.Parked(t.Context(), s.Reader, storetest.Chat, 10))(t)
	if len(list) != 2 || list[0].ID != one.ID || list[0].Sender != one.Sender || list[0].Verb != msg.VerbMessage || list[0].Content != "" {
		t.Errorf("parked rows are %+v", list)
	}
	if n := len(storetest.Must(rows.Undecided(t.Context(), s.Reader, storetest.Chat, 0, 10))(t)); n != 0 {
		t.Errorf("%d parked rows are undecided", n)
	}
	newer := storetest.Inbound(t, s, storetest.Chat, "newer")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.TakeUp(tx, storetest.Chat, 900) })
	var ids []int64
	for _, m := range storetest.Must(rows.Undecided(t.Context(), s.Reader, storetest.Chat, 0, 10))(t) {
		ids = append(ids, m.ID)
	}
	differ(t, "undecided rows", ids, []int64{one.ID, two.ID, newer.ID})
	differ(t, "rows", fates(t, s, other), []string{"onboarding/awaiting_approval"})
	storetest.Decide(t, s, one.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder})
}

func TestParked_TakeUpRow_NotParked_IsStale(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two := storetest.Park(t, s, storetest.Chat, "one"), storetest.Park(t, s, storetest.Chat, "two")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.TakeUpRow(tx, one.ID) })
	differ(t, "rows", fates(t, s, one, two), []string{"/", "onboarding/awaiting_approval"})
	refused(t, s, "again", func(tx *store.Tx) error { return rows.TakeUpRow(tx, one.ID) })
}

func TestParked_Drop_IsOfTheChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, other := storetest.Park(t, s, storetest.Chat, "one"), storetest.Park(t, s, storetest.Chat, "two"), storetest.Park(t, s, "telegram:-2", "other")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.DropParked(tx, storetest.Chat, msg.ReasonExpired, 20) })
	differ(t, "rows", fates(t, s, one, two, other), []string{"dropped/expired", "dropped/expired", "onboarding/awaiting_approval"})
	first, second := storetest.Must(s.Message(t.Context(), one.ID))(t), storetest.Must(s.Message(t.Context(), two.ID))(t)
	if first.DecidedAt != 20 || second.DecisionSeq <= first.DecisionSeq {
		t.Errorf("decided at %d, in the order %d, %d", first.DecidedAt, first.DecisionSeq, second.DecisionSeq)
	}
}
