package rows_test

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

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
