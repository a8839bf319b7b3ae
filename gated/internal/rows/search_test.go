package rows_test

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// bury stores so many rows of a chat after its messages that no user reads as one.
func bury(t *testing.T, s *store.Store, n int, thread string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
			INSERT INTO messages (chat_jid, direction, verb, kind, content, thread_id, timestamp, received_at)
			SELECT ?2, CASE i % 3 WHEN 2 THEN 'out' ELSE 'in' END, CASE i % 3 WHEN 0 THEN 'vote' WHEN 1 THEN 'reaction' ELSE 'message' END,
				CASE i % 3 WHEN 2 THEN 'reaction' ELSE 'message' END, 'x', ?3, 1, 1 FROM n`, n, storetest.Chat, thread)
	})
}

// TestMessages_BelowVotesAndReactions_AreFound stores 3,000 votes and reactions after two messages.
func TestMessages_BelowVotesAndReactions_AreFound(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	said := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "needle", ThreadID: "7", Timestamp: 1, ReceivedAt: 1})
	storetest.Decide(t, s, said.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, ThreadID: "7"})
	answered := gatedtest.Queued(t, s)
	own := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "answer", Source: msg.SourceAgent, TurnID: answered.ID, OutState: msg.OutSent})
	bury(t, s, 3000, "7")

	if got := storetest.Must(s.LastHome(t.Context(), storetest.Chat))(t); got != storetest.Folder {
		t.Errorf("home %q", got)
	}
	if got := storetest.Must(rows.LastAnswer(t.Context(), s.Reader, storetest.Folder, storetest.Chat, ""))(t); got != own.ID {
		t.Errorf("last answer %d, want %d", got, own.ID)
	}
	if !storetest.Must(rows.HasThread(t.Context(), s.Reader, storetest.Chat, "7"))(t) || storetest.Must(rows.HasThread(t.Context(), s.Reader, storetest.Chat, "8"))(t) {
		t.Error("the chat's threads are not found")
	}
	for name, scope := range map[string]rows.Scope{"chat": {ChatJID: storetest.Chat}, "thread": {ChatJID: storetest.Chat, ThreadID: "7"}} {
		if rows := storetest.Must(rows.Recent(t.Context(), s.Reader, scope, everything))(t); len(rows) == 0 || rows[0].Content != "needle" {
			t.Errorf("recent rows of the %s: %+v", name, rows)
		}
	}
	if rows := storetest.Must(rows.SearchMessages(t.Context(), s.Reader, search("needle")))(t); len(rows) != 1 {
		t.Errorf("%d rows found", len(rows))
	}
	last := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "later", ThreadID: "7", Timestamp: 2, ReceivedAt: 2})
	for _, m := range []*msg.Message{said, last} {
		differ(t, fmt.Sprintf("around %q", m.Content), textsOf(storetest.Must(rows.Around(t.Context(), s.Reader, m, 5))(t)), []string{"needle", "later"})
	}
}

func search(text string) rows.Search {
	return rows.Search{Folder: storetest.Folder, ChatJID: storetest.Chat, Text: text, Limit: 10, Others: rows.ScopeShared}
}

func textsOf(rows []*msg.Message) (all []string) {
	for _, m := range rows {
		all = append(all, m.Content)
	}
	return all
}

func TestSearch_EditedMessage_IsFoundByItsNewText(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := func(jid, id, text string) {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: jid, PlatformID: id, Direction: msg.In, Content: text, Timestamp: 1, ReceivedAt: 1})
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder})
	}
	change := func(jid, verb, target, text string) {
		storetest.Stored(t, s, &msg.Message{ChatJID: jid, Direction: msg.In, Verb: verb, TargetID: target, Content: text, Timestamp: 2, ReceivedAt: 2})
	}
	for _, jid := range []string{storetest.Chat, "telegram:-5"} {
		in(jid, "a", "the old plan")
		change(jid, msg.VerbEdit, "a", "a draft")
		change(jid, msg.VerbEdit, "a", "the new plan")
		in(jid, "b", "regretted plan")
		change(jid, msg.VerbDelete, "b", "")
	}
	own := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "my old answer", Source: msg.SourceAgent, OutState: msg.OutSent})
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Kind: msg.KindEdit, Content: "my new answer", DerivedFrom: own.ID, Source: msg.SourceTool, OutState: msg.OutSent})

	for text, want := range map[string][]string{
		"old": nil, "draft": nil, "regretted": nil, "NEW PLAN": {"the new plan", "the new plan"}, "new answer": {"my new answer"},
	} {
		differ(t, fmt.Sprintf("%q", text), textsOf(storetest.Must(rows.SearchMessages(t.Context(), s.Reader, search(text)))(t)), want)
	}
	differ(t, "around", textsOf(storetest.Must(rows.Around(t.Context(), s.Reader, own, 5))(t)), []string{"the new plan", "my new answer"})
}

func TestSearch_Poll_IsFoundByItsWords(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	poll := msg.Poll{Question: "Lunch?", Options: []string{"pizza", "soup & bread"}}
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Kind: msg.KindPoll, Content: poll.JSON(), Source: msg.SourceTool, OutState: msg.OutSent})
	for text, want := range map[string]int{"lunch": 1, "soup & bread": 1, "question": 0, "options": 0, "closes": 0} {
		if got := len(storetest.Must(rows.SearchMessages(t.Context(), s.Reader, search(text)))(t)); got != want {
			t.Errorf("%q: %d rows, want %d", text, got, want)
		}
	}
}

// TestSearch_DirectMessages_OfAChatNotDescribed are not read in other chats: the statement
// judges its address as msg.KindOfJID does.
func TestSearch_DirectMessages_OfAChatNotDescribed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	jids := []string{
		"telegram:5", "telegram:-5", "telegram+work:5", "telegram+work:-5", "discord:5", "discord:dm-5", "discord+work:dm-5", "slack:D5", "slack:C5",
		"slack+work:D5", "slack+work:C5", "web:acme", "group:acme", "matrix:D5", "telegram:",
	}
	for i, jid := range jids {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: jid, Direction: msg.In, Content: fmt.Sprintf("needle%d.", i), Timestamp: 1, ReceivedAt: 1})
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder})
		found := len(storetest.Must(rows.SearchMessages(t.Context(), s.Reader, search(fmt.Sprintf("needle%d.", i))))(t)) == 1
		observed, _, err := rows.Observed(t.Context(), s.Reader, observedSince(int64(i), 0, true, 1))
		if shared := msg.KindOfJID(jid) != msg.ChatDM; found != shared || (len(observed) == 1) != shared || err != nil {
			t.Errorf("%s: found %t, observed %d, want %t (%v)", jid, found, len(observed), shared, err)
		}
	}
}

// TestSearch_Pages has more rows than a page, of which one chat's were decided in another order.
func TestSearch_Pages_FindTheNewestFirst(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const list = 1200
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range list {
			m := &msg.Message{ChatJID: []string{storetest.Chat, "telegram:-5"}[i%2], Direction: msg.In, Content: fmt.Sprintf("word %d", i), Timestamp: 1, ReceivedAt: 1}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			if err := tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder}, 1); err != nil {
				return err
			}
		}
		return nil
	})
	search := rows.Search{Folder: storetest.Folder, ChatJID: storetest.Chat, Text: "WORD 1", Limit: 1000, Others: rows.ScopeAll}
	var want []string
	for i := list - 1; i >= 0; i-- {
		if text := fmt.Sprintf("word %d", i); text[5] == '1' {
			want = append(want, text)
		}
	}
	texts := func(limit int, before rows.SearchPosition) (all []string) {
		t.Helper()
		search.Limit, search.Before = limit, before
		for _, m := range storetest.Must(rows.SearchMessages(t.Context(), s.Reader, search))(t) {
			all = append(all, m.Content)
		}
		return all
	}
	newest := rows.SearchPosition{}
	differ(t, "all", texts(1000, newest), want)
	differ(t, "the first", texts(3, newest), want[:3])
	differ(t, "before row 20", texts(1000, rows.SearchPosition{ID: 20, Decision: 20}), []string{"word 18", "word 17", "word 16", "word 15", "word 14", "word 13", "word 12", "word 11", "word 10", "word 1"})
	search.Others = rows.ScopeNone
	for _, text := range texts(1000, newest) {
		if (text[len(text)-1]-'0')%2 != 0 {
			t.Errorf("%q is of the other chat", text)
		}
	}
}

// TestSearch_PageByPage_FindsRowsDecidedLate stores rows of two chats and decides those of the other one in any order:
// pages of any size have each row once.
func TestSearch_PageByPage_FindsRowsDecidedLate(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const list = 24
	var others []int64
	for i := range list {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: []string{storetest.Chat, "telegram:-5"}[i%2], Direction: msg.In, Content: "needle", Timestamp: 1, ReceivedAt: 1})
		if i%2 == 1 {
			others = append(others, m.ID)
		}
	}
	for i := range others { // the first row is decided last, the fifth one before it, and so on
		storetest.Decide(t, s, others[(len(others)-i)*5%len(others)], store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder})
	}
	for limit := 1; limit <= list; limit++ {
		search, seen := search("needle"), map[int64]bool{}
		search.Limit = limit
		for range list/limit + 1 {
			page := storetest.Must(rows.SearchMessages(t.Context(), s.Reader, search))(t)
			for _, m := range page {
				if seen[m.ID] {
					t.Errorf("pages of %d: row %d is on two", limit, m.ID)
				}
				seen[m.ID] = true
			}
			search.Before = search.After(page)
		}
		if len(seen) != list {
			t.Errorf("pages of %d: %d of %d rows found", limit, len(seen), list)
		}
	}
}

// A chat of pastes of 1 MiB: a search reads the last 32 MiB, and returns the beginning of each.
func TestSearch_LargeRows_AreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const size = 1 << 20
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 40 {
			if err := tx.Exec(`INSERT INTO messages (chat_jid, direction, content, timestamp, received_at)
				VALUES (?, 'in', ?, 1, 1)`, storetest.Chat, fmt.Sprintf("needle %d %s", i, strings.Repeat("0", size-16))); err != nil {
				return err
			}
		}
		return nil
	})
	found := storetest.Must(rows.SearchMessages(t.Context(), s.Reader, rows.Search{Folder: storetest.Folder, ChatJID: storetest.Chat, Text: "needle", Limit: 100, Others: rows.ScopeNone}))(t)
	if n := len(found); n < 32 || n > 36 || found[0].ID != 40 || len(found[0].Content) != 8192 {
		t.Errorf("%d rows of %d bytes found, of %d bytes", n, size, len(found[0].Content))
	}
}
