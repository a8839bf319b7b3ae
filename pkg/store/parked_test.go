package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// park parks a new row of a chat.
func park(t testing.TB, s *store.Store, jid, content string) *msg.Message {
	t.Helper()
	m := inbound(t, s, jid, content)
	decide(t, s, m.ID, store.Decision{Disposition: msg.Onboarding, Reason: msg.ReasonAwaitingApproval})
	return m
}

// fates returns "disposition/reason" of rows, "/" of undecided ones.
func fates(t testing.TB, s *store.Store, rows ...*msg.Message) (all []string) {
	t.Helper()
	for _, m := range rows {
		now := must(s.Message(t.Context(), m.ID))(t)
		all = append(all, string(now.Disposition)+"/"+string(now.Reason))
	}
	return all
}

func differ(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestParked_TakeUp_AreUndecidedInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, other := park(t, s, chat, "one"), park(t, s, chat, "two"), park(t, s, "telegram:-2", "other")
	write(t, s, func(tx *store.Tx) error {
		return tx.PutRequest(&store.Request{Code: "ABCD-1234", ChatJID: chat, Kind: msg.ChatGroup, CreatedAt: 1})
	})
	differ(t, "chats", must(s.ParkedChats(t.Context()))(t), []store.ParkedChat{{JID: chat, Pending: true}, {JID: "telegram:-2"}})
	rows := must(s.Parked(t.Context(), chat, 10))(t)
	if len(rows) != 2 || rows[0].ID != one.ID || rows[0].Sender != one.Sender || rows[0].Verb != msg.VerbMessage || rows[0].Content != "" {
		t.Errorf("parked rows are %+v", rows)
	}
	if n := len(must(s.Undecided(t.Context(), chat, 0, 10))(t)); n != 0 {
		t.Errorf("%d parked rows are undecided", n)
	}
	newer := inbound(t, s, chat, "newer")
	write(t, s, func(tx *store.Tx) error { return tx.TakeUp(chat, 900) })
	var ids []int64
	for _, m := range must(s.Undecided(t.Context(), chat, 0, 10))(t) {
		ids = append(ids, m.ID)
	}
	differ(t, "undecided rows", ids, []int64{one.ID, two.ID, newer.ID})
	differ(t, "rows", fates(t, s, other), []string{"onboarding/awaiting_approval"})
	decide(t, s, one.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder})
}

func TestParked_TakeUpRow_NotParked_IsStale(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two := park(t, s, chat, "one"), park(t, s, chat, "two")
	write(t, s, func(tx *store.Tx) error { return tx.TakeUpRow(one.ID) })
	differ(t, "rows", fates(t, s, one, two), []string{"/", "onboarding/awaiting_approval"})
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.TakeUpRow(one.ID) }); !errors.Is(err, store.ErrStale) {
		t.Errorf("again: %v", err)
	}
}

func TestParked_Drop_IsOfTheChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, other := park(t, s, chat, "one"), park(t, s, chat, "two"), park(t, s, "telegram:-2", "other")
	write(t, s, func(tx *store.Tx) error { return tx.DropParked(chat, msg.ReasonExpired, 20) })
	differ(t, "rows", fates(t, s, one, two, other), []string{"dropped/expired", "dropped/expired", "onboarding/awaiting_approval"})
	first, second := must(s.Message(t.Context(), one.ID))(t), must(s.Message(t.Context(), two.ID))(t)
	if first.DecidedAt != 20 || second.DecisionSeq <= first.DecisionSeq {
		t.Errorf("decided at %d, in the order %d, %d", first.DecidedAt, first.DecisionSeq, second.DecisionSeq)
	}
}

func TestStopParked_DropsOlderRowsOfTheSender(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, held := park(t, s, chat, "one"), park(t, s, chat, "two"), inbound(t, s, chat, "held")
	stop, later := inbound(t, s, chat, "/stop"), park(t, s, chat, "later")
	for _, tc := range []struct {
		sender string
		want   []string
	}{
		{"telegram:99", []string{"onboarding/awaiting_approval", "onboarding/awaiting_approval", "/", "onboarding/awaiting_approval"}},
		{one.Sender, []string{"dropped/stopped", "dropped/stopped", "/", "onboarding/awaiting_approval"}},
	} {
		write(t, s, func(tx *store.Tx) error { return tx.StopParked(chat, "", &tc.sender, stop.ID, 20) })
		differ(t, "rows after the stop of "+tc.sender, fates(t, s, one, two, held, later), tc.want)
	}
	write(t, s, func(tx *store.Tx) error { return tx.StopParked(chat, "thread", nil, later.ID+1, 20) })
	differ(t, "rows after the stop of a thread", fates(t, s, later), []string{"onboarding/awaiting_approval"})
	write(t, s, func(tx *store.Tx) error { return tx.StopParked(chat, "", nil, later.ID+1, 20) })
	differ(t, "rows after the stop of all", fates(t, s, later), []string{"dropped/stopped"})
}

func TestMoveChat_ParkedRows_MoveWithTheChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for range 1100 { // more than one commit moves
		inbound(t, s, chat, "undecided")
	}
	one := park(t, s, chat, "one")
	write(t, s, func(tx *store.Tx) error { return tx.MoveChat(chat, "telegram:-1001", 20) })
	if m := must(s.Message(t.Context(), one.ID))(t); m.ChatJID != "telegram:-1001" || m.Disposition != msg.Onboarding {
		t.Errorf("the row is %+v", m)
	}
}
