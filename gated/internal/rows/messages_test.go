package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		more   bool
	}{
		{0, 100, []string{"a:1", "b:2", "c:3"}, 6, false},
		{0, 1, []string{"a:1"}, 1, true},
		{1, 1, []string{"b:2"}, 2, true},
		{2, 2, nil, 4, true}, // nothing for gated, but the cursor moves on
		{4, 100, []string{"a:1", "c:3"}, 6, false},
		{6, 100, nil, 6, false},
		{99, 100, nil, 99, false},
	}
	for _, tt := range tests {
		floor := &store.Floor{At: tt.cursor}
		got, err := rows.NewMessages(t.Context(), s.Reader, floor, tt.limit)
		if storetest.Server() != "" { // which raises it with the next look
			floor.At = tt.next
		}
		if !slices.Equal(got.Chats, tt.chats) || floor.At != tt.next || got.More != tt.more || err != nil || (got.Arrived != 0) != (len(got.Chats) > 0) {
			t.Errorf("from %d, %d rows: %+v %v, want %v %d %t", tt.cursor, tt.limit, got, err, tt.chats, tt.next, tt.more)
		}
	}
	waiting := storetest.Must(rows.UndecidedChats(t.Context(), s.Reader))(t)
	slices.Sort(waiting)
	differ(t, "undecided chats", waiting, []string{"a:1", "b:2", "c:3"})
	if got := storetest.Must(s.LastMessageID(t.Context()))(t); got != 6 {
		t.Errorf("last row: %d", got)
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
	return storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, &msg.Turn{Folder: storetest.Folder}, 0, 0, 0))(t).LastDecision
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

func TestFiredEdit_LatestEdit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	change := func(verb, target, content string, d msg.Disposition, reason msg.Reason) {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: verb, TargetID: target, Content: content})
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: d, Reason: reason, RoutedTo: storetest.Folder})
	}
	change(msg.VerbEdit, "1", "old", msg.Observed, msg.ReasonEditSuperseded)
	change(msg.VerbEdit, "1", "new", msg.Observed, msg.ReasonEditNote)
	change(msg.VerbEdit, "1", "dropped", msg.Observed, msg.ReasonEditSame)
	change(msg.VerbReaction, "1", "👍", msg.Observed, msg.ReasonReactionOnly)
	change(msg.VerbEdit, "2", "fires", msg.Routed, msg.ReasonEditAddressed)
	for _, tt := range []struct{ chat, target, fired, latest string }{
		{storetest.Chat, "1", "", "new"}, {storetest.Chat, "2", "fires", "fires"}, {storetest.Chat, "3", "", ""},
		{"telegram:-2", "1", "", ""}, {"telegram:-2", "2", "", ""},
	} {
		fired := storetest.Must(rows.FiredEdit(t.Context(), s.Reader, tt.chat, tt.target))(t)
		latest := storetest.Must(rows.LatestEdit(t.Context(), s.Reader, tt.chat, tt.target))(t)
		for want, got := range map[string]*msg.Message{"fired " + tt.fired: fired, "latest " + tt.latest: latest} {
			what, text, _ := strings.Cut(want, " ")
			if (got != nil) != (text != "") || got != nil && got.Content != text {
				t.Errorf("%s %s: the %s edit is %+v", tt.chat, tt.target, what, got)
			}
		}
	}
}

func TestWantFiles_PendingRow_PokesItsAdapterOnce(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 10)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	m, plain := storetest.WithFiles(t, s, storetest.Chat), storetest.Inbound(t, s, storetest.Chat, "without files")
	for range 2 {
		storetest.Receive(t, "the poke of a row", pokes)
	}
	for range 2 {
		storetest.Write(t, s, func(tx *store.Tx) error { return errors.Join(rows.WantFiles(tx, m.ID), rows.WantFiles(tx, plain.ID)) })
	}
	if got := storetest.Receive(t, "the poke of the wish", pokes); got != "teled" || len(pokes) != 0 {
		t.Errorf("poked %s, %d more", got, len(pokes))
	}
	if !storetest.Must(s.Message(t.Context(), m.ID))(t).FilesWanted || storetest.Must(s.Message(t.Context(), plain.ID))(t).FilesWanted {
		t.Error("the wrong row is wanted")
	}
}
