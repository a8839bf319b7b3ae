package rows_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// indexAll puts all rows into the index.
func indexAll(t testing.TB, s *store.Store) {
	t.Helper()
	for more := true; more; {
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			_, more, err = tx.IndexMessages()
			return err
		})
	}
}

// found searches for what a user types, and returns the contents that are shown, the newest first.
func found(t testing.TB, s *store.Store, text string) []string {
	t.Helper()
	page := storetest.Must(rows.ListMessages(t.Context(), s.Reader, rows.MessageFilter{Match: store.SearchQuery(text), Limit: 50}))(t)
	return textsOf(page.Rows)
}

func TestSearch_Words_InAnyOrderAndCase(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, text := range []string{"The nightly build is red", "Build the NIGHTLY report", "Über naïve e-mail", "красный дом"} {
		storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: text, Timestamp: 1, ReceivedAt: 1})
	}
	indexAll(t, s)
	for query, want := range map[string][]string{
		"nightly build":   {"Build the NIGHTLY report", "The nightly build is red"},
		`"nightly build"`: {"The nightly build is red"},
		"nightly repo*":   {"Build the NIGHTLY report"},
		"repo":            nil,
		"uber naive":      {"Über naïve e-mail"},
		"E-Mail":          {"Über naïve e-mail"},
		"mail-e":          nil,
		"КРАСНЫЙ":         {"красный дом"},
		"build -red":      {"The nightly build is red"},
		"build OR dom":    nil,
	} {
		if diff := cmp.Diff(want, found(t, s, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// TestSearch_Edits_LastTextCounts has edits of users and of the bot, a deletion, and an edit of a row that is not decided yet.
func TestSearch_Edits_LastTextCounts(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := func(platformID, target, verb, text string) *msg.Message {
		return storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, PlatformID: platformID, TargetID: target, Verb: verb, Content: text, Timestamp: 1, ReceivedAt: 1})
	}
	out := func(kind msg.Kind, of int64, text string) *msg.Message {
		return storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Kind: kind, DerivedFrom: of, Content: text, OutState: msg.OutSent, Timestamp: 1, ReceivedAt: 1})
	}
	in("1", "", "", "first apple")
	in("2", "1", msg.VerbEdit, "second pear")
	in("3", "1", msg.VerbEdit, "third plum")
	in("4", "", "", "gone apple")
	in("5", "4", msg.VerbDelete, "")
	own := out(msg.KindMessage, 0, "answer apple")
	out(msg.KindEdit, own.ID, "answer plum")
	in("6", "99", msg.VerbEdit, "orphan fig")
	open := in("7", "", "", "undecided fig")
	indexAll(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return gatedtest.ReplaceContent(tx, open.ID, "undecided date", false, msg.VerbMessage)
	})
	indexAll(t, s)
	for query, want := range map[string][]string{
		"apple": nil, "pear": nil, "plum": {"answer plum", "third plum"}, "fig": {"orphan fig"}, "date": {"undecided date"},
	} {
		if diff := cmp.Diff(want, found(t, s, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	page := storetest.Must(rows.ListMessages(t.Context(), s.Reader, rows.MessageFilter{Match: store.SearchQuery("plum"), Limit: 50}))(t)
	if page.Rows[0].ID != own.ID || page.Rows[1].PlatformID != "1" {
		t.Errorf("found %d and %s, not what was edited", page.Rows[0].ID, page.Rows[1].PlatformID)
	}
	checkIndex(t, s)
}

// checkIndex compares the index with the texts.
func checkIndex(t testing.TB, s *store.Store) {
	t.Helper()
	if storetest.Server() != "" {
		return // a server checks its indexes itself
	}
	if lines := storetest.Must(store.Damage(t.Context(), storetest.Value[string](t, s, `SELECT file FROM pragma_database_list WHERE name = 'main'`)))(t); len(lines) > 0 {
		t.Errorf("the database is damaged: %q", lines)
	}
}

// TestSearch_DeletedRows_LeaveTheIndex deletes rows as retention does, before and after they were indexed.
func TestSearch_DeletedRows_LeaveTheIndex(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	fill(t, s, 1, 700, "old word")
	lag := storetest.Must(rows.CountSearchLag(t.Context(), s.Reader, 500))(t)
	if lag.Rows != 700 || lag.Since != 1 {
		t.Errorf("before: %+v", lag)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { // the first batch
		n, more, err := tx.IndexMessages()
		if n != 200 || !more {
			t.Errorf("%d rows, more: %t", n, more)
		}
		return err
	})
	checkIndex(t, s) // behind, and nothing is wrong with it
	if n := len(found(t, s, "word")); n != 50 {
		t.Errorf("%d found", n)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(`DELETE FROM messages WHERE id > 10 AND id <= 650`) })
	if n := len(found(t, s, "word")); n != 10 {
		t.Errorf("%d found after others were deleted", n)
	}
	checkIndex(t, s)
	indexAll(t, s)
	checkIndex(t, s)
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM search_deleted`); n != 0 {
		t.Errorf("%d texts of deleted rows are left", n)
	}
	if lag := storetest.Must(rows.CountSearchLag(t.Context(), s.Reader, 500))(t); lag != (rows.SearchLag{}) {
		t.Errorf("after: %+v", lag)
	}
	match := map[bool]string{true: `words @@ 'word'`, false: `message_search MATCH 'word'`}[storetest.Server() != ""]
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM message_search WHERE `+match); n != 60 {
		t.Errorf("%d in the index", n)
	}
}

func TestIndexMessages_LongTexts_EndABatch(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for range 10 {
		storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: strings.Repeat("long ", 20_000) + "end", Timestamp: 1, ReceivedAt: 1})
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		n, more, err := tx.IndexMessages()
		if n != 4 || !more {
			t.Errorf("%d rows, more: %t", n, more)
		}
		return err
	})
	indexAll(t, s)
	if n, end := len(found(t, s, "long")), len(found(t, s, "end")); n != 10 || end != 0 {
		t.Errorf("%d found, %d by a word after the first 16,384 characters", n, end)
	}
	checkIndex(t, s)
}
