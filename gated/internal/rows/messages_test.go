package rows_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestDecidedInbound_NewestDecided_AndWhenTheTableChanged(t *testing.T) {
	s := storetest.Open(t)
	var want []int64
	for i := range 3 {
		m := storetest.Inbound(t, s, "telegram:1", fmt.Sprint("text ", i))
		storetest.Write(t, s, func(tx *store.Tx) error {
			return tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, int64(100*(i+1)))
		})
		want = append([]int64{m.ID}, want...)
	}
	storetest.Inbound(t, s, "telegram:1", "not decided")
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.PutAudit("cli", "change group", "main", 7); err != nil {
			return err
		}
		return tx.PutAudit("cli", "approve", "main", 9)
	})
	for name, tc := range map[string]struct {
		since int64
		limit int
		want  []int64
	}{"all": {0, 10, want}, "since": {200, 10, want[:2]}, "limit": {0, 1, want[:1]}} {
		rows, err := rows.DecidedInbound(t.Context(), s.Reader, tc.since, tc.limit)
		var got []int64
		for _, m := range rows {
			got = append(got, m.ID)
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
	if at, err := rows.TableChangedAt(t.Context(), s.Reader); err != nil || at != 7 {
		t.Errorf("changed at %d, %v", at, err)
	}
}

func TestNewMessages_AfterCursor_ReturnsEachChatOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := storetest.Must(s.LastMessageID(t.Context()))(t); got != 0 {
		t.Errorf("last row of an empty table: %d", got)
	}
	storetest.Inbound(t, s, "a:1", "1")
	storetest.Inbound(t, s, "b:2", "2")
	storetest.Stored(t, s, &msg.Message{ChatJID: "out:1", Direction: msg.Out})
	storetest.Decide(t, s, storetest.Inbound(t, s, "decided:1", "4").ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	storetest.Inbound(t, s, "a:1", "5")
	storetest.Inbound(t, s, "c:3", "6")
	tests := []struct {
		cursor int64
		limit  int
		chats  []string
		next   int64
	}{
		{0, 100, []string{"a:1", "b:2", "c:3"}, 6},
		{0, 1, []string{"a:1"}, 1},
		{1, 1, []string{"b:2"}, 2},
		{2, 2, nil, 4}, // nothing for gated, but the cursor moves on
		{4, 100, []string{"a:1", "c:3"}, 6},
		{6, 100, nil, 6},
		{99, 100, nil, 99},
	}
	for _, tt := range tests {
		chats, arrived, next, err := rows.NewMessages(t.Context(), s.Reader, tt.cursor, tt.limit)
		if !slices.Equal(chats, tt.chats) || next != tt.next || err != nil || (arrived != 0) != (len(chats) > 0) {
			t.Errorf("from %d, %d rows: %v, arrived %d, %d %v, want %v %d", tt.cursor, tt.limit, chats, arrived, next, err, tt.chats, tt.next)
		}
	}
	waiting := storetest.Must(rows.UndecidedChats(t.Context(), s.Reader))(t)
	slices.Sort(waiting)
	differ(t, "undecided chats", waiting, []string{"a:1", "b:2", "c:3"})
	if got := storetest.Must(s.LastMessageID(t.Context()))(t); got != 6 {
		t.Errorf("last row: %d", got)
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := storetest.Must(rows.Cursor(t.Context(), s.Reader))(t); got != 0 {
		t.Errorf("at first: %d", got)
	}
	for _, id := range []int64{5, 9, 9, 2} {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.SetCursor(tx, id) })
		if got := storetest.Must(rows.Cursor(t.Context(), s.Reader))(t); got != id {
			t.Errorf("%d, want %d", got, id)
		}
	}
}

func TestUndecidedPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	quarter := strings.Repeat("x", rows.PageBytes/4)
	var ids []int64
	for _, content := range []string{"a", quarter, quarter, quarter, quarter, "b", "c"} {
		ids = append(ids, storetest.Inbound(t, s, "a:1", content).ID)
		storetest.Inbound(t, s, "b:2", "of another chat")
	}
	page := func(after int64, limit int) (got []int64) {
		for _, m := range storetest.Must(rows.Undecided(t.Context(), s.Reader, "a:1", after, limit))(t) {
			got = append(got, m.ID)
		}
		return got
	}
	for _, tt := range []struct {
		after int64
		limit int
		want  []int64
	}{
		{0, 10, ids[:5]}, // the row with which the page is full is its last
		{0, 2, ids[:2]},
		{ids[1], 10, ids[2:]},
		{ids[6], 10, nil},
	} {
		if got := page(tt.after, tt.limit); !slices.Equal(got, tt.want) {
			t.Errorf("after %d, %d rows: %v, want %v", tt.after, tt.limit, got, tt.want)
		}
	}
	storetest.Decide(t, s, ids[1], store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	if got := page(0, 10); !slices.Equal(got, slices.Delete(slices.Clone(ids), 1, 2)) {
		t.Errorf("after a decision: %v", got)
	}
}

// lastDecision is the highest decision_seq in use.
func lastDecision(t *testing.T, s *store.Store) int64 {
	t.Helper()
	return storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, &msg.Turn{Folder: storetest.Folder}, 0, 0))(t).LastDecision
}

func TestDecide(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := storetest.Inbound(t, s, storetest.Chat, "#deploy go")
	turnID := gatedtest.Queued(t, s).ID
	before := lastDecision(t, s)
	d := store.Decision{
		Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: turnID, Topic: "#deploy", ThreadID: "7",
	}
	storetest.Decide(t, s, m.ID, d)
	want := *m
	want.Disposition, want.Reason, want.RoutedTo, want.TurnID = msg.Routed, msg.ReasonRoute, storetest.Folder, turnID
	want.Topic, want.ThreadID, want.DecidedAt, want.DecisionSeq = "#deploy", "7", 10, before+1
	differ(t, "got", storetest.Must(s.Message(t.Context(), m.ID))(t), &want)
	for _, id := range []int64{m.ID, 4711} {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			return tx.Decide(id, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, 11)
		})
		if !errors.Is(err, store.ErrStale) {
			t.Errorf("row %d: %v", id, err)
		}
	}
	if got := lastDecision(t, s); got != before+1 {
		t.Errorf("a failed decision used a number: %d after %d", got, before)
	}
	differ(t, "decided twice", storetest.Must(s.Message(t.Context(), m.ID))(t), &want)
}

func TestReplaceContent(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := storetest.Inbound(t, s, storetest.Chat, "helo")
	edit := func(tx *store.Tx) error { return rows.ReplaceContent(tx, m.ID, "hello", true, msg.VerbMention) }
	storetest.Write(t, s, edit)
	if got := storetest.Must(s.Message(t.Context(), m.ID))(t); got.Content != "hello" || !got.Addressed || got.Verb != msg.VerbMention {
		t.Errorf("%+v", got)
	}
	storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	refused(t, s, "of a decided row", edit)
}

func TestAttachNotes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	note := func(chatJID, routedTo, thread string, reason msg.Reason) int64 {
		m := storetest.Inbound(t, s, chatJID, "edited")
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: reason, RoutedTo: routedTo, ThreadID: thread})
		return m.ID
	}
	mine := note(storetest.Chat, storetest.Folder, "thread", msg.ReasonEditNote)
	others := []int64{
		note("telegram:-2", storetest.Folder, "thread", msg.ReasonEditNote), note(storetest.Chat, "else", "thread", msg.ReasonEditNote),
		note(storetest.Chat, storetest.Folder, "", msg.ReasonEditNote), note(storetest.Chat, storetest.Folder, "thread", msg.ReasonRouteObserve),
	}
	first, second := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.AttachNotes(tx, first) })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.AttachNotes(tx, second) })
	if got := storetest.Must(s.Message(t.Context(), mine))(t).TurnID; got != first.ID {
		t.Errorf("the note went to turn %d, want %d", got, first.ID)
	}
	for _, id := range others {
		if got := storetest.Must(s.Message(t.Context(), id))(t).TurnID; got != 0 {
			t.Errorf("row %d went to turn %d", id, got)
		}
	}
	var ids []int64
	for _, m := range storetest.Must(s.TurnMessages(t.Context(), first.ID))(t) {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, []int64{mine, first.TriggerMessageID}) {
		t.Errorf("rows of the turn: %v", ids)
	}
}

func TestFiredEdit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	edit := func(target string, d store.Decision) {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbEdit, TargetID: target})
		storetest.Decide(t, s, m.ID, d)
	}
	edit("1", store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote})
	edit("2", store.Decision{Disposition: msg.Routed, Reason: msg.ReasonEditAddressed, RoutedTo: storetest.Folder})
	for target, want := range map[string]bool{"1": false, "2": true, "3": false} {
		if got := storetest.Must(rows.FiredEdit(t.Context(), s.Reader, storetest.Chat, target))(t); (got != nil) != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	if storetest.Must(rows.FiredEdit(t.Context(), s.Reader, "telegram:-2", "2"))(t) != nil {
		t.Error("of another chat")
	}
}

func TestLatestEdit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	change := func(verb, target, content string, reason msg.Reason) {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: verb, TargetID: target, Content: content})
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: reason, RoutedTo: storetest.Folder})
	}
	change(msg.VerbEdit, "1", "old", msg.ReasonEditSuperseded)
	change(msg.VerbEdit, "1", "new", msg.ReasonEditNote)
	change(msg.VerbEdit, "1", "dropped", msg.ReasonEditSame)
	change(msg.VerbReaction, "1", "👍", msg.ReasonReactionOnly)
	change(msg.VerbEdit, "2", "of another", msg.ReasonEditNote)
	if m := storetest.Must(rows.LatestEdit(t.Context(), s.Reader, storetest.Chat, "1"))(t); m == nil || m.Content != "new" {
		t.Errorf("the latest edit is %+v", m)
	}
	if m := storetest.Must(rows.LatestEdit(t.Context(), s.Reader, "telegram:-2", "1"))(t); m != nil {
		t.Errorf("of another chat: %+v", m)
	}
}

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
		return tx.PutRequest(&store.Request{Code: "ABCD-1234", ChatJID: storetest.Chat, Kind: msg.ChatGroup, CreatedAt: 1})
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

func TestStopParked_DropsOlderRowsOfTheSender(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, held := storetest.Park(t, s, storetest.Chat, "one"), storetest.Park(t, s, storetest.Chat, "two"), storetest.Inbound(t, s, storetest.Chat, "held")
	stop, later := storetest.Inbound(t, s, storetest.Chat, "/stop"), storetest.Park(t, s, storetest.Chat, "later")
	for _, tc := range []struct {
		sender string
		want   []string
	}{
		{"telegram:99", []string{"onboarding/awaiting_approval", "onboarding/awaiting_approval", "/", "onboarding/awaiting_approval"}},
		{one.Sender, []string{"dropped/stopped", "dropped/stopped", "/", "onboarding/awaiting_approval"}},
	} {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.StopParked(tx, storetest.Chat, "", &tc.sender, stop.ID, 20) })
		differ(t, "rows after the stop of "+tc.sender, fates(t, s, one, two, held, later), tc.want)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.StopParked(tx, storetest.Chat, "thread", nil, later.ID+1, 20) })
	differ(t, "rows after the stop of a thread", fates(t, s, later), []string{"onboarding/awaiting_approval"})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.StopParked(tx, storetest.Chat, "", nil, later.ID+1, 20) })
	differ(t, "rows after the stop of all", fates(t, s, later), []string{"dropped/stopped"})
}

// cutoff is the time before which rows of these tests are old.
const cutoff = 1000

// history is a random history in the database, with the reasons for which rows must
// stay: a row that is kept, such as "turns 3", and those that it needs.
type history struct {
	t     *rapid.T
	s     *store.Store
	rows  []string
	parts int
	keep  map[string]bool
	needs map[string][]string

	ids    map[string]int64 // the last id of each table
	writes []func(*store.Tx) error
}

func node(table string, id int64) string { return fmt.Sprintf("%s %d", table, id) }

// insert stores a row and notes it. All rows are written at once, see write.
func (h *history) insert(table, columns string, args ...any) int64 {
	h.ids[table]++
	id := h.ids[table]
	if storetest.Server() != "" { // a row's own id does not move a server's counter
		h.exec(`SELECT setval(pg_get_serial_sequence('`+table+`', 'id'), ?)`, id)
	}
	h.exec(`INSERT INTO `+table+` (id, `+columns+`) VALUES (?`+strings.Repeat(`,?`, len(args))+`)`, append([]any{id}, args...)...)
	h.rows = append(h.rows, node(table, id))
	return id
}

func (h *history) exec(query string, args ...any) {
	h.writes = append(h.writes, func(tx *store.Tx) error { return tx.Exec(query, args...) })
}

// write stores what was inserted, in one commit.
func (h *history) write() {
	h.t.Helper()
	err := h.s.Write(context.Background(), func(tx *store.Tx) error {
		for _, write := range h.writes {
			if err := write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.writes = nil
}

// at draws a time, and reports whether it is young.
func (h *history) at(what string) (int64, bool) {
	at := rapid.SampledFrom([]int64{1, cutoff - 1, cutoff, 2000}).Draw(h.t, what)
	return at, at >= cutoff
}

func (h *history) oneOf(what string, table string) any {
	var ids []any
	for _, row := range h.rows {
		var id int64
		if n, _ := fmt.Sscanf(row, table+" %d", &id); n == 1 {
			ids = append(ids, id)
		}
	}
	return rapid.SampledFrom(append(ids, nil, nil)).Draw(h.t, what)
}

// need notes that a row needs another one, if there is one.
func (h *history) need(row, table string, id any) {
	if id != nil {
		h.needs[row] = append(h.needs[row], node(table, id.(int64)))
	}
}

func (h *history) addRun() {
	started, youngStart := h.at("started")
	var ended any
	at, young := h.at("ended")
	if rapid.Bool().Draw(h.t, "has ended") {
		ended = at
	}
	id := h.insert("runs", `folder, topic, chat_jid, runtime, started_at, closed_at, ended_at`,
		fmt.Sprint(len(h.rows)), "", storetest.Chat, "process", started, at, ended)
	h.keep[node("runs", id)] = ended == nil || young || youngStart
}

func (h *history) addTurn() {
	trigger := h.oneOf("trigger", "messages")
	if trigger == nil {
		return
	}
	created, youngCreated := h.at("created")
	ended, youngEnded := h.at("ended")
	state := rapid.SampledFrom([]string{"queued", "running", "done", "failed", "cancelled"}).Draw(h.t, "state")
	root, run := h.oneOf("root", "turns"), h.oneOf("run", "runs")
	if run == nil && state == "running" {
		state = "queued"
	}
	open := state == "queued" || state == "running"
	var endedAt any = ended
	if open {
		endedAt = nil
	}
	id := h.insert("turns", `kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, run_id, root_turn_id, created_at, ended_at`,
		"delegated", "f", storetest.Chat, "", trigger, "", 0, state, run, root, created, endedAt)
	row := node("turns", id)
	h.keep[row] = open || youngCreated || youngEnded
	h.need(row, "messages", trigger)
	h.need(row, "turns", root)
	h.need(row, "runs", run)
}

func (h *history) addMessage() {
	received, young := h.at("received")
	derived, turn := h.oneOf("derived from", "messages"), h.oneOf("turn", "turns")
	target := h.oneOf("target", "messages")
	var disposition, reason, decided, seq, outState, forwarded, targetID any
	if target != nil {
		targetID = fmt.Sprint("p", target)
	}
	waits := false
	direction := rapid.SampledFrom([]string{"in", "out"}).Draw(h.t, "direction")
	if direction == "out" {
		outState = rapid.SampledFrom([]string{"queued", "sending", "sent", "failed", "ambiguous", "cancelled"}).Draw(h.t, "out state")
		waits = outState == "queued" || outState == "sending"
	} else if disposition = rapid.SampledFrom([]any{nil, "observed", "dropped", "onboarding"}).Draw(h.t, "disposition"); disposition != nil {
		at, youngDecision := h.at("decided")
		decided, reason, seq, young = at, "route", len(h.rows), young || youngDecision
		waits = disposition == "onboarding"
	} else {
		waits = true
	}
	returns := h.oneOf("returns to", "turns")
	if returns != nil {
		forwarded = fmt.Sprintf(`{"kind":"delegate","root_turn_id":%d}`, returns)
	}
	id := h.insert("messages", `chat_jid, platform_id, target_id, direction, timestamp, received_at, derived_from, turn_id, disposition, reason,
		decided_at, decision_seq, out_state, forwarded_from`,
		storetest.Chat, fmt.Sprint("p", h.ids["messages"]+1), targetID, direction, 1, received, derived, turn, disposition, reason, decided, seq, outState, forwarded)
	row := node("messages", id)
	h.keep[row] = waits || young
	h.need(row, "messages", derived)
	if waits || young {
		h.need(row, "turns", turn)
	}
	if direction == "in" && disposition == nil {
		h.need(row, "turns", returns)
		h.need(row, "messages", target)
	}
	if turn != nil { // what belongs to a turn stays with it
		h.needs[node("turns", turn.(int64))] = append(h.needs[node("turns", turn.(int64))], row)
	}
	if direction == "out" && rapid.Bool().Draw(h.t, "has a delivery") {
		updated, youngDelivery := h.at("updated")
		h.exec(`INSERT INTO deliveries (message_id, part, state, updated_at) VALUES (?, 0, 'sent', ?)`, id, updated)
		h.keep[row] = h.keep[row] || youngDelivery
	}
}

// addPart stores a row that hangs on another one.
func (h *history) addPart() {
	turn, message := h.oneOf("turn", "turns"), h.oneOf("message", "messages")
	if turn == nil || message == nil {
		return
	}
	at, young := h.at("ended")
	open := rapid.Bool().Draw(h.t, "open")
	n := len(h.rows)
	h.parts++
	switch rapid.IntRange(0, 4).Draw(h.t, "part") {
	case 0:
		state, ended := "open", any(nil)
		if !open {
			state, ended = "expired", at
		}
		h.insert("asks", `turn_id, ask_id, message_id, question, options, state, created_at, expires_at, ended_at`,
			turn, fmt.Sprint(h.parts), message, "?", "[]", state, 1, 1, ended)
		h.keep[node("turns", turn.(int64))] = h.keep[node("turns", turn.(int64))] || open || young
		h.need(node("turns", turn.(int64)), "messages", message)
		h.rows = h.rows[:n]
	case 1:
		state, closed := "open", any(nil)
		if !open {
			state, closed = "closed", at
		}
		h.insert("polls", `message_id, folder, chat_jid, question, options, state, created_at, closed_at`, message, "f", storetest.Chat, "?", "[]", state, 1, closed)
		h.exec(`INSERT INTO poll_votes (poll_id, voter, options, at) SELECT max(id), 'v', '[1]', 1 FROM polls`)
		h.exec(`INSERT INTO poll_refs (daemon, ref, message_id) VALUES ('teled', ?, ?)`, fmt.Sprint(h.parts), message)
		h.keep[node("messages", message.(int64))] = h.keep[node("messages", message.(int64))] || open || young
		h.rows = h.rows[:n]
	case 2:
		h.exec(`INSERT INTO chat_reply_state (jid, topic, last_reply_id) VALUES (?, ?, ?)`, storetest.Chat, fmt.Sprint(h.parts), message)
		h.keep[node("messages", message.(int64))] = true
	case 3:
		h.exec(`INSERT INTO system_messages (folder, origin, event, turn_id, created_at) VALUES ('f', '', '', ?, 1)`, turn)
		h.keep[node("turns", turn.(int64))] = true
	case 4:
		h.exec(`INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?, 'c', 'react', '{}', 1) ON CONFLICT DO NOTHING`, turn)
		h.exec(`INSERT INTO turn_progress (turn_id, state, updated_at) VALUES (?, 'idle', 1) ON CONFLICT DO NOTHING`, turn)
		h.exec(`INSERT INTO previews (turn_id, chat_jid, state, created_at, updated_at) VALUES (?, '', 'final', 1, 1)`, turn)
	}
}

// kept are the rows that must stay: those to keep, and what they need.
func (h *history) kept() map[string]bool {
	kept := map[string]bool{}
	var add func(row string)
	add = func(row string) {
		if !kept[row] {
			kept[row] = true
			for _, needed := range h.needs[row] {
				add(needed)
			}
		}
	}
	for row, keep := range h.keep {
		if keep {
			add(row)
		}
	}
	return kept
}

func (h *history) stored(row string) (stored bool) {
	table, id, _ := strings.Cut(row, " ")
	if _, err := h.s.Get(context.Background(), []any{&stored}, `SELECT EXISTS (SELECT 1 FROM `+table+` WHERE id = ?)`, id); err != nil {
		h.t.Fatal(err)
	}
	return stored
}

// purge runs at most a number of pages of two rows, as a purge that is killed does.
func (h *history) purge(pages int) {
	for _, kind := range []rows.History{rows.HistoryTurns, rows.HistoryMessages, rows.HistoryRuns} {
		for again := true; again; {
			again = false
			for after := int64(0); ; pages-- {
				ids, next, err := rows.OldRows(context.Background(), h.s.Reader, kind, after, cutoff, 2)
				if err != nil {
					h.t.Fatal(err)
				}
				if next == after {
					break // rows after a page of young ones are not looked at: here all pages are read
				}
				if pages == 0 {
					return
				}
				after = next
				err = h.s.Write(context.Background(), func(tx *store.Tx) error {
					n, err := rows.Purge(tx, kind, ids, cutoff)
					again = again || n > 0
					return err
				})
				if err != nil {
					h.t.Fatal(err)
				}
			}
		}
	}
}

// checkKept checks that all that must stay is there.
func (h *history) checkKept() {
	h.t.Helper()
	var broken int
	if storetest.Server() != "" {
		// A server refuses a row that refers to none.
	} else if must1(h.t, h.s, `SELECT count(*) FROM pragma_foreign_key_check`, &broken); broken > 0 {
		h.t.Fatalf("%d broken references", broken)
	}
	for row := range h.kept() {
		if !h.stored(row) {
			h.t.Fatalf("%s was deleted", row)
		}
	}
}

// TestPurge_RandomHistory_KeepsWhatIsNeeded kills purges between pages.
func TestPurge_RandomHistory_KeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	tables := []string{"asks", "poll_votes", "poll_refs", "polls", "chat_reply_state", "system_messages", "tool_calls", "turn_progress", "previews", "deliveries", "turns", "messages", "runs"}
	ids := map[string]int64{} // of all runs: no id is handed out twice
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, s: s, keep: map[string]bool{}, needs: map[string][]string{}, ids: ids}
		for _, table := range tables {
			h.exec(`DELETE FROM ` + table)
		}
		t.Repeat(map[string]func(*rapid.T){
			"run":     func(t *rapid.T) { h.t = t; h.addRun() },
			"turn":    func(t *rapid.T) { h.t = t; h.addTurn() },
			"turn 2":  func(t *rapid.T) { h.t = t; h.addTurn() },
			"message": func(t *rapid.T) { h.t = t; h.addMessage() },
			"row":     func(t *rapid.T) { h.t = t; h.addMessage() },
			"part":    func(t *rapid.T) { h.t = t; h.addPart() },
		})
		h.t = t
		h.write()
		var seq, newest int64
		must1(t, s, `SELECT value FROM counters WHERE name = 'deliveries'`, &seq)
		newest = h.ids["messages"]
		for range rapid.IntRange(0, 4).Draw(t, "kills") {
			h.purge(rapid.IntRange(1, 20).Draw(t, "pages until it is killed"))
			h.checkKept()
		}
		h.purge(1 << 20)
		h.checkKept()
		kept := h.kept()
		for _, row := range h.rows {
			if !kept[row] && h.stored(row) {
				t.Errorf("%s is left, but nothing needs it", row)
			}
		}
		var after int64
		if must1(t, s, `SELECT value FROM counters WHERE name = 'deliveries'`, &after); after != seq {
			t.Errorf("the counter of deliveries went from %d to %d", seq, after)
		}
		row := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In}
		if id, _, err := s.PutMessage(context.Background(), row); err != nil || id <= newest {
			t.Errorf("row id %d was used before (%v)", id, err)
		}
	})
}

// must1 reads one value.
func must1(t *rapid.T, s *store.Store, query string, dest any) {
	t.Helper()
	if _, err := s.Get(context.Background(), []any{dest}, query); err != nil {
		t.Fatal(err)
	}
}

func TestPurge_ReminderSlots_KeepsTheLast(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var ids []int64
	for range 2 {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, ReceivedAt: 1, OutState: msg.OutSent})
		ids = append(ids, m.ID)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.Exec(`INSERT INTO reminders (folder, chat_jid, kind, body, due_at, state, created_at, updated_at)
			VALUES ('f', 'a:1', 'text', '', 1, 'active', 1, 1)`),
			tx.Exec(`INSERT INTO reminder_slots (reminder_id, slot, message_id) VALUES (1, 10, ?), (1, 20, ?)`, ids[0], ids[1]))
	})
	storetest.Write(t, s, func(tx *store.Tx) error {
		n, err := rows.Purge(tx, rows.HistoryMessages, ids, cutoff)
		if n != 2 {
			t.Errorf("%d deleted", n)
		}
		return err
	})
	if got := storetest.Value[string](t, s, `SELECT group_concat(slot || ' ' || CASE WHEN message_id IS NULL THEN 'none' ELSE 'one' END, ',') FROM reminder_slots`); got != "20 none" {
		t.Errorf("slots %s", got)
	}
}

func TestPurge_DeliveriesOfAllRows_NewOnesReachRoutd(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	deliver := func(at int64) int64 {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, ReceivedAt: at, OutState: msg.OutQueued})
		storetest.Write(t, s, func(tx *store.Tx) error {
			return errors.Join(tx.ClaimOutbound(m.ID, 1, at), tx.PutDelivery(store.Delivery{MessageID: m.ID, State: msg.OutSent}, at),
				tx.SettleOutbound(m.ID, msg.OutSent, ""))
		})
		return m.ID
	}
	id := deliver(1)
	changes := storetest.Must(s.DeliveryChanges(t.Context(), 0, 10))(t)
	read := changes[len(changes)-1].Seq
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, err := rows.Purge(tx, rows.HistoryMessages, []int64{id}, cutoff)
		return err
	})
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM deliveries`); n != 0 {
		t.Fatalf("%d deliveries are left", n)
	}
	next := deliver(2000)
	if got := storetest.Must(s.DeliveryChanges(t.Context(), read, 10))(t); len(got) != 1 || got[0].MessageID != next {
		t.Errorf("after the purge routd reads %+v", got)
	}
}

// BenchmarkPurge deletes pages of a history of 10^5 messages, turns and deliveries.
// maxms is the longest that a page held the write lock.
func BenchmarkPurge(b *testing.B) {
	s := storetest.Open(b)
	storetest.OldChat(b, s, "telegram:-5", 100_000, 0)
	storetest.Write(b, s, func(tx *store.Tx) error {
		return errors.Join(tx.Exec(`UPDATE turns SET state = 'done', ended_at = 1`), tx.Exec(`UPDATE messages SET received_at = 1, decided_at = CASE WHEN disposition IS NULL THEN NULL ELSE 1 END`),
			tx.Exec(`UPDATE deliveries SET updated_at = 1`))
	})
	b.ResetTimer()
	pages, longest := 0, 0.0
	for _, kind := range []rows.History{rows.HistoryTurns, rows.HistoryMessages} {
		for after := int64(0); ; pages++ {
			ids, next, err := rows.OldRows(b.Context(), s.Reader, kind, after, cutoff, 200)
			if err != nil || len(ids) == 0 {
				break
			}
			before := b.Elapsed()
			storetest.Write(b, s, func(tx *store.Tx) error { _, err := rows.Purge(tx, kind, ids, cutoff); return err })
			longest, after = max(longest, (b.Elapsed()-before).Seconds()*1000), next
		}
	}
	if left := storetest.Value[int](b, s, `SELECT count(*) FROM messages`); left > 0 {
		b.Fatalf("%d rows are left", left)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(pages), "ms/page")
	b.ReportMetric(longest, "maxms")
}
