package rows_test

import (
	"math"
	"slices"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// observe stores a decided row of another chat.
func observe(t *testing.T, s *store.Store, set func(*msg.Message, *store.Decision)) *msg.Message {
	t.Helper()
	m := &msg.Message{ChatJID: "slack:C1", Direction: msg.In, Content: "seen", ReceivedAt: 1000}
	d := store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: storetest.Folder}
	if set != nil {
		set(m, &d)
	}
	storetest.Stored(t, s, m)
	storetest.Decide(t, s, m.ID, d)
	return m
}

func TestObserved_Excludes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutChat("slack:D1", msg.ChatDM, "Ada", 1) })
	early := observe(t, s, nil)
	after := lastDecision(t, s)
	tests := map[string]func(*msg.Message, *store.Decision){
		"its own chat":   func(m *msg.Message, _ *store.Decision) { m.ChatJID = storetest.Chat },
		"another folder": func(_ *msg.Message, d *store.Decision) { d.RoutedTo = "else" },
		"too old":        func(m *msg.Message, _ *store.Decision) { m.ReceivedAt = 999 },
		"bots":           func(m *msg.Message, _ *store.Decision) { m.IsBot = true },
		"empty rows":     func(m *msg.Message, _ *store.Decision) { m.Content = "" },
		"edits":          func(m *msg.Message, _ *store.Decision) { m.Verb = msg.VerbEdit },
		"deletes":        func(m *msg.Message, _ *store.Decision) { m.Verb = msg.VerbDelete },
		"commands":       func(_ *msg.Message, d *store.Decision) { d.Disposition = msg.Command },
		"prefixed":       func(_ *msg.Message, d *store.Decision) { d.Disposition = msg.Prefix },
	}
	for _, set := range tests {
		observe(t, s, set)
	}
	list, left, err := rows.Observed(t.Context(), s.Reader, observedSince(after, 1000, false, 100))
	if len(list) != 0 || left != 0 || err != nil {
		t.Errorf("shown: %+v, %d left out, %v", list, left, err)
	}

	plain := observe(t, s, nil)
	routed := observe(t, s, func(m *msg.Message, d *store.Decision) { m.Topic, d.Disposition = "#x", msg.Routed })
	file := observe(t, s, func(m *msg.Message, _ *store.Decision) {
		m.Content, m.Attachments = "", []msg.Attachment{{Name: "cat.jpg"}}
	})
	dm := observe(t, s, func(m *msg.Message, _ *store.Decision) { m.ChatJID = "slack:D1" })
	undescribed := observe(t, s, func(m *msg.Message, _ *store.Decision) { m.ChatJID = "slack:D2" })
	for _, tt := range []struct {
		name   string
		after  int64
		shared bool
		want   []*msg.Message
	}{
		{"all", after, false, []*msg.Message{plain, routed, file, dm, undescribed}},
		{"shared", after, true, []*msg.Message{plain, routed, file}},
		{"from the start", 0, true, []*msg.Message{early, plain, routed, file}},
	} {
		rows, left, err := rows.Observed(t.Context(), s.Reader, observedSince(tt.after, 1000, tt.shared, 100))
		if err != nil || left != 0 || !slices.Equal(ids(rows), ids(tt.want)) {
			t.Errorf("%s: rows %v, %d left out, %v; want rows %v", tt.name, ids(rows), left, err, ids(tt.want))
		}
	}
}

func observedSince(after, since int64, shared bool, limit int) rows.ObservedQuery {
	return rows.ObservedQuery{Folder: storetest.Folder, ExceptChat: storetest.Chat, After: after, Through: math.MaxInt64, Since: since, Shared: shared, Limit: limit}
}

// TestObserved_OrderedByDecision decides rows in another order than they arrived.
func TestObserved_OrderedByDecision(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var list []*msg.Message
	for range 5 {
		list = append(list, storetest.Stored(t, s, &msg.Message{ChatJID: "slack:C1", Direction: msg.In, Content: "x"}))
	}
	order := []int{3, 0, 4, 1, 2}
	var want []int64
	for _, i := range order {
		storetest.Decide(t, s, list[i].ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: storetest.Folder})
		want = append(want, list[i].ID)
	}
	for limit, wantLeft := range map[int]int{1: 4, 4: 1, 5: 0, 6: 0} {
		got, left, err := rows.Observed(t.Context(), s.Reader, observedSince(0, 0, false, limit))
		newest := want[len(want)-min(limit, len(want)):]
		if !slices.Equal(ids(got), newest) || left != wantLeft || err != nil {
			t.Errorf("limit %d: %v and %d left out, want %v and %d (%v)", limit, ids(got), left, newest, wantLeft, err)
		}
	}
}

// TestObserved_ManyRows_IsBounded stores 10,000 newer rows.
func TestObserved_ManyRows_IsBounded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	buried := observe(t, s, nil)
	bury := func(n int) {
		storetest.Write(t, s, func(tx *store.Tx) error {
			return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
				INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, routed_to, disposition, reason, decided_at, decision_seq)
				SELECT ?2, 'in', 'own', 1, 1000, ?3, 'routed', 'route', 1, (SELECT max(decision_seq) FROM messages) + i FROM n`, n, storetest.Chat, storetest.Folder)
		})
	}
	bury(9_999)
	if rows, _, err := rows.Observed(t.Context(), s.Reader, observedSince(0, 0, false, 100)); !slices.Equal(ids(rows), []int64{buried.ID}) || err != nil {
		t.Errorf("below 9,999 rows: %v, %v", ids(rows), err)
	}
	bury(1)
	if rows, left, err := rows.Observed(t.Context(), s.Reader, observedSince(0, 0, false, 100)); len(rows) != 0 || left != 0 || err != nil {
		t.Errorf("below 10,000 rows: %v, %d, %v", ids(rows), left, err)
	}
}
