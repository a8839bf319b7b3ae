package store_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPutMessage_Redelivered_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := msg.Message{ChatJID: "telegram:1", PlatformID: "7", Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 2}
	id := stored(t, s, &first).ID
	decide(t, s, id, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	before := must(s.Message(t.Context(), id))(t)

	again := msg.Message{ChatJID: "telegram:1", PlatformID: "7", Direction: msg.In, Content: "changed"}
	if got, fresh, err := s.PutMessage(t.Context(), &again); got != id || again.ID != id || fresh || err != nil {
		t.Errorf("again: %d %v %v", got, fresh, err)
	}
	if diff := cmp.Diff(before, must(s.Message(t.Context(), id))(t)); diff != "" {
		t.Errorf("a redelivery changed the row (-want +got):\n%s", diff)
	}
	for _, other := range []msg.Message{
		{ChatJID: "telegram:2", PlatformID: "7", Direction: msg.In},
		{ChatJID: "telegram:1", PlatformID: "8", Direction: msg.In},
		{ChatJID: "telegram:1", Direction: msg.In}, {ChatJID: "telegram:1", Direction: msg.In},
	} {
		if stored(t, s, &other).ID == id {
			t.Errorf("%+v counts as the same", other)
		}
	}
}

func TestMessageByPlatformID(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := stored(t, s, &msg.Message{ChatJID: chat, PlatformID: "1", Direction: msg.In})
	out := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, OutState: msg.OutSent})
	elsewhere := stored(t, s, &msg.Message{ChatJID: "telegram:-2", Direction: msg.Out, OutState: msg.OutSent})
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO deliveries (message_id, part, seq, state, platform_id, updated_at) VALUES
			(?1, 0, 1, 'sent', '20', 1), (?1, 1, 2, 'sent', '21', 1), (?2, 0, 3, 'sent', '30', 1), (?2, 1, 4, 'sent', '21', 1)`,
			out.ID, elsewhere.ID)
	})
	for _, tt := range []struct {
		chat, id string
		want     int64
	}{
		{chat, "1", in.ID}, {chat, "20", out.ID}, {chat, "21", out.ID}, {"telegram:-2", "21", elsewhere.ID},
		{chat, "30", 0}, {chat, "", 0}, {"telegram:-2", "1", 0},
	} {
		m := must(s.MessageByPlatformID(t.Context(), tt.chat, tt.id))(t)
		if m == nil && tt.want != 0 || m != nil && m.ID != tt.want {
			t.Errorf("%s in %s: %+v, want row %d", tt.id, tt.chat, m, tt.want)
		}
	}
	if m, err := s.Message(t.Context(), 4711); m != nil || err != nil {
		t.Errorf("no such row: %+v, %v", m, err)
	}
}

func TestNewMessages_AfterCursor_ReturnsEachChatOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := must(s.LastMessageID(t.Context()))(t); got != 0 {
		t.Errorf("last row of an empty table: %d", got)
	}
	inbound(t, s, "a:1", "1")
	inbound(t, s, "b:2", "2")
	stored(t, s, &msg.Message{ChatJID: "out:1", Direction: msg.Out})
	decide(t, s, inbound(t, s, "decided:1", "4").ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	inbound(t, s, "a:1", "5")
	inbound(t, s, "c:3", "6")
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
		chats, arrived, next, err := s.NewMessages(t.Context(), tt.cursor, tt.limit)
		if !slices.Equal(chats, tt.chats) || next != tt.next || err != nil || (arrived != 0) != (len(chats) > 0) {
			t.Errorf("from %d, %d rows: %v, arrived %d, %d %v, want %v %d", tt.cursor, tt.limit, chats, arrived, next, err, tt.chats, tt.next)
		}
	}
	waiting := must(s.UndecidedChats(t.Context()))(t)
	slices.Sort(waiting)
	if diff := cmp.Diff([]string{"a:1", "b:2", "c:3"}, waiting); diff != "" {
		t.Errorf("undecided chats (-want +got):\n%s", diff)
	}
	if got := must(s.LastMessageID(t.Context()))(t); got != 6 {
		t.Errorf("last row: %d", got)
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := must(s.Cursor(t.Context()))(t); got != 0 {
		t.Errorf("at first: %d", got)
	}
	for _, id := range []int64{5, 9, 9, 2} {
		write(t, s, func(tx *store.Tx) error { return tx.SetCursor(id) })
		if got := must(s.Cursor(t.Context()))(t); got != id {
			t.Errorf("%d, want %d", got, id)
		}
	}
}

func TestUndecidedPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	quarter := strings.Repeat("x", store.PageBytes/4)
	var ids []int64
	for _, content := range []string{"a", quarter, quarter, quarter, quarter, "b", "c"} {
		ids = append(ids, inbound(t, s, "a:1", content).ID)
		inbound(t, s, "b:2", "of another chat")
	}
	page := func(after int64, limit int) (got []int64) {
		for _, m := range must(s.Undecided(t.Context(), "a:1", after, limit))(t) {
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
	decide(t, s, ids[1], store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	if got := page(0, 10); !slices.Equal(got, slices.Delete(slices.Clone(ids), 1, 2)) {
		t.Errorf("after a decision: %v", got)
	}
}

// lastDecision is the highest decision_seq in use.
func lastDecision(t *testing.T, s *store.Store) int64 {
	t.Helper()
	return must(s.PromptFacts(t.Context(), &msg.Turn{Folder: folder}, 0, 0))(t).LastDecision
}

func TestDecide(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := inbound(t, s, chat, "#deploy go")
	turnID := queued(t, s).ID
	before := lastDecision(t, s)
	d := store.Decision{
		Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: turnID, Topic: "#deploy", ThreadID: "7",
	}
	decide(t, s, m.ID, d)
	want := *m
	want.Disposition, want.Reason, want.RoutedTo, want.TurnID = msg.Routed, msg.ReasonRoute, folder, turnID
	want.Topic, want.ThreadID, want.DecidedAt, want.DecisionSeq = "#deploy", "7", 10, before+1
	if diff := cmp.Diff(&want, must(s.Message(t.Context(), m.ID))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
	if diff := cmp.Diff(&want, must(s.Message(t.Context(), m.ID))(t)); diff != "" {
		t.Errorf("decided twice (-want +got):\n%s", diff)
	}
}

func TestReplaceContent(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := inbound(t, s, chat, "helo")
	edit := func(tx *store.Tx) error { return tx.ReplaceContent(m.ID, "hello", true, msg.VerbMention) }
	write(t, s, edit)
	if got := must(s.Message(t.Context(), m.ID))(t); got.Content != "hello" || !got.Addressed || got.Verb != msg.VerbMention {
		t.Errorf("%+v", got)
	}
	decide(t, s, m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	if err := s.Write(t.Context(), edit); !errors.Is(err, store.ErrStale) {
		t.Errorf("of a decided row: %v", err)
	}
}

func TestAttachNotes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	note := func(chatJID, routedTo, thread string, reason msg.Reason) int64 {
		m := inbound(t, s, chatJID, "edited")
		decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: reason, RoutedTo: routedTo, ThreadID: thread})
		return m.ID
	}
	mine := note(chat, folder, "thread", msg.ReasonEditNote)
	others := []int64{
		note("telegram:-2", folder, "thread", msg.ReasonEditNote), note(chat, "else", "thread", msg.ReasonEditNote),
		note(chat, folder, "", msg.ReasonEditNote), note(chat, folder, "thread", msg.ReasonRouteObserve),
	}
	first, second := queued(t, s), queued(t, s)
	write(t, s, func(tx *store.Tx) error { return tx.AttachNotes(first) })
	write(t, s, func(tx *store.Tx) error { return tx.AttachNotes(second) })
	if got := must(s.Message(t.Context(), mine))(t).TurnID; got != first.ID {
		t.Errorf("the note went to turn %d, want %d", got, first.ID)
	}
	for _, id := range others {
		if got := must(s.Message(t.Context(), id))(t).TurnID; got != 0 {
			t.Errorf("row %d went to turn %d", id, got)
		}
	}
	var ids []int64
	for _, m := range must(s.TurnMessages(t.Context(), first.ID))(t) {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, []int64{mine, first.TriggerMessageID}) {
		t.Errorf("rows of the turn: %v", ids)
	}
}

func TestDerivedFrom(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	original := inbound(t, s, chat, "@eng hi").ID
	a := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, DerivedFrom: original}).ID
	b := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, DerivedFrom: original}).ID
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, DerivedFrom: a})
	rows := must(s.DerivedFrom(t.Context(), original))(t)
	if len(rows) != 2 || rows[0].ID != a || rows[1].ID != b {
		t.Errorf("%d rows", len(rows))
	}
}

func TestFiredEdit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	edit := func(target string, d store.Decision) {
		m := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Verb: msg.VerbEdit, TargetID: target})
		decide(t, s, m.ID, d)
	}
	edit("1", store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote})
	edit("2", store.Decision{Disposition: msg.Routed, Reason: msg.ReasonEditAddressed, RoutedTo: folder})
	for target, want := range map[string]bool{"1": false, "2": true, "3": false} {
		if got := must(s.FiredEdit(t.Context(), chat, target))(t); (got != nil) != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	if must(s.FiredEdit(t.Context(), "telegram:-2", "2"))(t) != nil {
		t.Error("of another chat")
	}
}

func TestLatestEdit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	change := func(verb, target, content string, reason msg.Reason) {
		m := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Verb: verb, TargetID: target, Content: content})
		decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: reason, RoutedTo: folder})
	}
	change(msg.VerbEdit, "1", "old", msg.ReasonEditSuperseded)
	change(msg.VerbEdit, "1", "new", msg.ReasonEditNote)
	change(msg.VerbEdit, "1", "dropped", msg.ReasonEditSame)
	change(msg.VerbReaction, "1", "👍", msg.ReasonReactionOnly)
	change(msg.VerbEdit, "2", "of another", msg.ReasonEditNote)
	if m := must(s.LatestEdit(t.Context(), chat, "1"))(t); m == nil || m.Content != "new" {
		t.Errorf("the latest edit is %+v", m)
	}
	if m := must(s.LatestEdit(t.Context(), "telegram:-2", "1"))(t); m != nil {
		t.Errorf("of another chat: %+v", m)
	}
}

func TestLastStaleAt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	stale := store.Decision{Disposition: msg.Observed, Reason: msg.ReasonStale, RoutedTo: folder}
	for i, d := range []store.Decision{stale, stale, {Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}} {
		m := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, ReceivedAt: int64(100 * (i + 1))})
		decide(t, s, m.ID, d)
	}
	if at := must(s.LastStaleAt(t.Context(), chat))(t); at != 200 {
		t.Errorf("last stale row at %d, want 200", at)
	}
	if at := must(s.LastStaleAt(t.Context(), "telegram:-2"))(t); at != 0 {
		t.Errorf("another chat's: %d", at)
	}
}

// observe stores a decided row of another chat.
func observe(t *testing.T, s *store.Store, set func(*msg.Message, *store.Decision)) *msg.Message {
	t.Helper()
	m := &msg.Message{ChatJID: "slack:C1", Direction: msg.In, Content: "seen", ReceivedAt: 1000}
	d := store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: folder}
	if set != nil {
		set(m, &d)
	}
	stored(t, s, m)
	decide(t, s, m.ID, d)
	return m
}

func TestObserved_Excludes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error { return tx.PutChat("slack:D1", msg.ChatDM, "Ada", 1) })
	early := observe(t, s, nil)
	after := lastDecision(t, s)
	tests := map[string]func(*msg.Message, *store.Decision){
		"its own chat":   func(m *msg.Message, _ *store.Decision) { m.ChatJID = chat },
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
	rows, left, err := s.Observed(t.Context(), observedSince(after, 1000, false, 100))
	if len(rows) != 0 || left != 0 || err != nil {
		t.Errorf("shown: %+v, %d left out, %v", rows, left, err)
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
		rows, left, err := s.Observed(t.Context(), observedSince(tt.after, 1000, tt.shared, 100))
		if err != nil || left != 0 || !slices.Equal(ids(rows), ids(tt.want)) {
			t.Errorf("%s: rows %v, %d left out, %v; want rows %v", tt.name, ids(rows), left, err, ids(tt.want))
		}
	}
}

func observedSince(after, since int64, shared bool, limit int) store.ObservedQuery {
	return store.ObservedQuery{Folder: folder, ExceptChat: chat, After: after, Through: math.MaxInt64, Since: since, Shared: shared, Limit: limit}
}

func ids(rows []*msg.Message) (all []int64) {
	for _, m := range rows {
		all = append(all, m.ID)
	}
	return all
}

// TestObserved_OrderedByDecision decides rows in another order than they arrived.
func TestObserved_OrderedByDecision(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var rows []*msg.Message
	for range 5 {
		rows = append(rows, stored(t, s, &msg.Message{ChatJID: "slack:C1", Direction: msg.In, Content: "x"}))
	}
	order := []int{3, 0, 4, 1, 2}
	var want []int64
	for _, i := range order {
		decide(t, s, rows[i].ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: folder})
		want = append(want, rows[i].ID)
	}
	for limit, wantLeft := range map[int]int{1: 4, 4: 1, 5: 0, 6: 0} {
		got, left, err := s.Observed(t.Context(), observedSince(0, 0, false, limit))
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
		write(t, s, func(tx *store.Tx) error {
			return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
				INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, routed_to, disposition, reason, decided_at, decision_seq)
				SELECT ?2, 'in', 'own', 1, 1000, ?3, 'routed', 'route', 1, (SELECT max(decision_seq) FROM messages) + i FROM n`, n, chat, folder)
		})
	}
	bury(9_999)
	if rows, _, err := s.Observed(t.Context(), observedSince(0, 0, false, 100)); !slices.Equal(ids(rows), []int64{buried.ID}) || err != nil {
		t.Errorf("below 9,999 rows: %v, %v", ids(rows), err)
	}
	bury(1)
	if rows, left, err := s.Observed(t.Context(), observedSince(0, 0, false, 100)); len(rows) != 0 || left != 0 || err != nil {
		t.Errorf("below 10,000 rows: %v, %d, %v", ids(rows), left, err)
	}
}

func TestPutMessage_GroupKeyQuoteAndError_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, GroupKey: "album:7", Quote: "this part"})
	decide(t, s, m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBadRow, Error: "panic: no"})
	got := must(s.Message(t.Context(), m.ID))(t)
	if got.GroupKey != "album:7" || got.Quote != "this part" || got.Error != "panic: no" || got.FilesWanted {
		t.Errorf("row %+v", got)
	}
}
