package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// fill stores rows of the chat with a text, at the times from first on.
func fill(t testing.TB, s *store.Store, first, n int, text string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT CAST(?1 AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + ?2 - 1)
			INSERT INTO messages (chat_jid, direction, content, timestamp, received_at) SELECT ?3, 'in', ?4, i, i FROM n`, first, n, storetest.Chat, text)
	})
}

// listedAll follows a list from page to page and returns all rows, and how many pages ended before they were full.
func listedAll(t testing.TB, s *store.Store, f rows.MessageFilter) (ids []int64, short int) {
	t.Helper()
	for range 1000 {
		page := storetest.Must(rows.ListMessages(t.Context(), s.Reader, f))(t)
		for _, m := range page.Rows {
			ids = append(ids, m.ID)
		}
		if (page.Through != 0) != (page.Next != 0 && len(page.Rows) < f.Limit) {
			t.Errorf("%d rows, next %d, through %d", len(page.Rows), page.Next, page.Through)
		}
		if page.Through != 0 {
			short++
		}
		if page.Next == 0 {
			return ids, short
		}
		f.Before = page.Next
	}
	t.Fatal("the list does not end")
	return nil, 0
}

// listFixture stores rows of each kind.
func listFixture(t *testing.T) (s *store.Store, all []*msg.Message) {
	s = storetest.Open(t)
	now, failed := int64(0), int64(0)
	for i := range 12 {
		for _, sender := range []string{"telegram:1", "telegram:2"} {
			now += 10
			m := storetest.Stored(t, s, &msg.Message{ChatJID: fmt.Sprintf("telegram:-%d", i%2+1), Direction: msg.In, Sender: sender, Content: "needle", Timestamp: now, ReceivedAt: now})
			switch i % 4 {
			case 0:
				storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "acme"})
			case 1:
				storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
			case 2:
				storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Onboarding, Reason: msg.ReasonAwaitingApproval})
			}
			all = append(all, storetest.Must(s.Message(t.Context(), m.ID))(t))
		}
		states := []msg.OutState{msg.OutSent, msg.OutFailed, msg.OutAmbiguous, msg.OutQueued, msg.OutSending, msg.OutCancelled}
		now += 10
		m := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-1", Direction: msg.Out, Sender: "agent:acme", Content: "hay", OutState: states[i%6], DerivedFrom: failed, Timestamp: now, ReceivedAt: now})
		failed = 0
		if m.OutState == msg.OutFailed {
			class := []msg.ErrorClass{msg.Permanent, msg.Expired}[i/6]
			storetest.Write(t, s, func(tx *store.Tx) error {
				return tx.PutDelivery(store.Delivery{MessageID: m.ID, State: msg.OutFailed, ErrorClass: class}, 1)
			})
			failed = m.ID
		}
		all = append(all, m)
	}
	indexAll(t, s)
	slices.Reverse(all)
	return s, all
}

// TestListMessages_EveryPairOfFilters_IsTheRowsThatMatch compares each list with a check of all rows.
func TestListMessages_EveryPairOfFilters_IsTheRowsThatMatch(t *testing.T) {
	t.Parallel()
	s, all := listFixture(t)
	class := func(m *msg.Message) (c msg.ErrorClass) {
		for _, d := range storetest.Must(s.Deliveries(t.Context(), m.ID))(t) {
			c = d.ErrorClass
		}
		return c
	}
	copied := map[int64]int64{}
	for _, m := range all {
		copied[m.DerivedFrom] = m.ID
	}
	type filter struct {
		name  string
		set   func(*rows.MessageFilter)
		match func(*msg.Message) bool
	}
	filters := []filter{
		{"none", func(*rows.MessageFilter) {}, func(*msg.Message) bool { return true }},
		{"text", func(f *rows.MessageFilter) { f.Match = store.SearchQuery("needle") }, func(m *msg.Message) bool { return m.Content == "needle" }},
		{"chat", func(f *rows.MessageFilter) { f.Chat = "telegram:-2" }, func(m *msg.Message) bool { return m.ChatJID == "telegram:-2" }},
		{"group", func(f *rows.MessageFilter) { f.Folder = "acme" }, func(m *msg.Message) bool { return m.RoutedTo == "acme" }},
		{"sender", func(f *rows.MessageFilter) { f.Sender = "telegram:2" }, func(m *msg.Message) bool { return m.Sender == "telegram:2" }},
		{"agent", func(f *rows.MessageFilter) { f.Sender, f.Direction = "agent:acme", msg.Out }, func(m *msg.Message) bool { return m.Sender == "agent:acme" }},
		{"in", func(f *rows.MessageFilter) { f.Direction = msg.In }, func(m *msg.Message) bool { return m.Direction == msg.In }},
		{"undecided", func(f *rows.MessageFilter) { f.Disposition = rows.Undecided }, func(m *msg.Message) bool { return m.Direction == msg.In && m.Disposition == "" }},
		{"parked", func(f *rows.MessageFilter) { f.Disposition = msg.Onboarding }, func(m *msg.Message) bool { return m.Disposition == msg.Onboarding }},
		{"dropped", func(f *rows.MessageFilter) { f.Disposition = msg.Dropped }, func(m *msg.Message) bool { return m.Disposition == msg.Dropped }},
		{"no_route", func(f *rows.MessageFilter) { f.Disposition, f.Reason = msg.Dropped, msg.ReasonNoRoute }, func(m *msg.Message) bool { return m.Reason == msg.ReasonNoRoute }},
		{"sent", func(f *rows.MessageFilter) { f.State = msg.OutSent }, func(m *msg.Message) bool { return m.OutState == msg.OutSent }},
		{"failed", func(f *rows.MessageFilter) { f.State = msg.OutFailed }, func(m *msg.Message) bool { return m.OutState == msg.OutFailed }},
		{"waiting", func(f *rows.MessageFilter) { f.State = rows.StateWaiting }, func(m *msg.Message) bool { return m.OutState == msg.OutQueued || m.OutState == msg.OutSending }},
		{"sending", func(f *rows.MessageFilter) { f.State = msg.OutSending }, func(m *msg.Message) bool { return m.OutState == msg.OutSending }},
		{"expired", func(f *rows.MessageFilter) { f.Class = msg.Expired }, func(m *msg.Message) bool { return class(m) == msg.Expired }},
		{"uncopied", func(f *rows.MessageFilter) { f.Uncopied = true }, func(m *msg.Message) bool { return copied[m.ID] == 0 }},
		{"time", func(f *rows.MessageFilter) { f.Since, f.Until = 100, 250 }, func(m *msg.Message) bool { return m.ReceivedAt >= 100 && m.ReceivedAt < 250 }},
	}
	for _, a := range filters {
		for _, b := range filters {
			f := rows.MessageFilter{Limit: 3}
			a.set(&f)
			b.set(&f)
			if a.name == "agent" && b.name == "in" || a.name == "in" && b.name == "agent" || a.name == "sender" && b.name == "agent" || a.name == "agent" && b.name == "sender" ||
				f.State != "" && a.name != b.name && b.name != "none" && a.name != "none" && slices.Contains([]string{"sent", "failed", "waiting", "sending"}, a.name) && slices.Contains([]string{"sent", "failed", "waiting", "sending"}, b.name) ||
				f.Disposition != "" && slices.Contains([]string{"undecided", "parked", "dropped", "no_route"}, a.name) && slices.Contains([]string{"undecided", "parked", "dropped", "no_route"}, b.name) {
				continue // the second one replaces the first
			}
			var want []int64
			for _, m := range all {
				if a.match(m) && b.match(m) {
					want = append(want, m.ID)
				}
			}
			got, _ := listedAll(t, s, f)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s and %s (-want +got):\n%s", a.name, b.name, diff)
			}
		}
	}
}

// TestListMessages_RareRows_EndAPageEarly has one row that matches below thousands that do not.
func TestListMessages_RareRows_EndAPageEarly(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	own := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "own", OutState: msg.OutSent, Timestamp: 1, ReceivedAt: 1})
	fill(t, s, 2, 4100, "x")
	ids, short := listedAll(t, s, rows.MessageFilter{Direction: msg.Out, Limit: 50})
	if !slices.Equal(ids, []int64{own.ID}) || short != 2 {
		t.Errorf("rows %v, %d short pages", ids, short)
	}
	page := storetest.Must(rows.ListMessages(t.Context(), s.Reader, rows.MessageFilter{Since: 1000, Until: 1003, Limit: 50}))(t)
	if len(page.Rows) != 3 || page.Rows[0].ReceivedAt != 1002 || page.Next != 0 {
		t.Errorf("%d rows of a time, next %d", len(page.Rows), page.Next)
	}
}

func TestListMessages_BadExpression_IsAnError(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if _, err := rows.ListMessages(t.Context(), s.Reader, rows.MessageFilter{Match: `"unclosed`, Limit: 1}); err == nil || errors.Is(err, rows.ErrTooBroad) {
		t.Error(err)
	}
}
