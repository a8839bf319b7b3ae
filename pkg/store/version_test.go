package store_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestWatch_Commits_AreSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	s := storetest.OpenAt(t, path, nil)
	w, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	other, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	want := func(when string, want bool) {
		t.Helper()
		if got, err := w.Changed(t.Context()); got != want || err != nil {
			t.Errorf("%s: %t, %v", when, got, err)
		}
	}
	want("at first", true)
	want("without a commit", false)
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In})
	want("after a commit of this process", true)
	want("again", false)
	for range 2 {
		if _, err := other.Exec(`UPDATE messages SET topic = topic || 'x'`); err != nil {
			t.Fatal(err)
		}
	}
	want("after commits of another connection", true)
	if _, err := s.LastMessageID(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("after a read", false)
}
