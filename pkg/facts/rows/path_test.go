package rows_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/migrations"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestRunsDuring_RunIsLive_IsShown(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run := gatedtest.Begun(t, s, gatedtest.Queued(t, s)) // at 200
	if got := storetest.Must(rows.RunsDuring(t.Context(), s.Reader, storetest.Folder, "", 1000, 2000, 1))(t); len(got) != 1 || got[0].ID != run.ID || got[0].EndedAt != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestOwnReplies(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	row := func(m msg.Message) int64 {
		m.Timestamp, m.ReceivedAt = 1, 1
		return storetest.Stored(t, s, &m).ID
	}
	out := msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, ReplyToID: "p1", Source: msg.SourceCommand, OutState: msg.OutQueued}
	row(out) // came before the row
	asked := &msg.Message{ChatJID: storetest.Chat, PlatformID: "p1", Direction: msg.In, Timestamp: 1, ReceivedAt: 1}
	storetest.Stored(t, s, asked)
	want := row(out)
	for _, change := range []func(*msg.Message){
		func(m *msg.Message) { m.ReplyToID = "p2" },
		func(m *msg.Message) { m.ChatJID = "telegram:2" },
		func(m *msg.Message) { m.TurnID = turn.ID },
		func(m *msg.Message) { m.Direction, m.OutState = msg.In, "" },
	} {
		other := out
		change(&other)
		row(other)
	}
	if got := storetest.Must(rows.OwnReplies(t.Context(), s.Reader, asked))(t); len(got) != 1 || got[0].ID != want {
		t.Errorf("got %+v, want row %d", got, want)
	}
}

func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	read := func(name string, want string) {
		t.Helper()
		r, err := store.OpenReadOnly(t.Context(), path, migrations.Latest())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer r.Close()
		if m := storetest.Must(r.Message(t.Context(), 1))(t); m == nil || m.Content != want {
			t.Errorf("%s: it reads %+v", name, m)
		}
	}
	s, err := store.Open(t.Context(), store.Options{Path: path, Autocheckpoint: store.DefaultAutocheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 1})
	read("while a daemon has it", "hi")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read("when no daemon has it", "hi")
	if store.IsServer(path) {
		return
	}
	before := storetest.Must(os.ReadFile(path))(t)
	read("again", "hi")
	if diff := cmp.Diff(len(before), len(storetest.Must(os.ReadFile(path))(t))); diff != "" {
		t.Error("reading changed the file", diff)
	}
}

func TestOpenReadOnly_NotTheDatabase_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path  string
		built int
		want  string
	}{
		{filepath.Join(t.TempDir(), "none.db"), migrations.Latest(), "set ARIZUKO_DATA to the data folder"},
		{empty, migrations.Latest(), "run `migrate up`"},
		{storetest.Path(t), migrations.Latest() + 1, "run `migrate up`"},
		{storetest.Path(t), 0, "too old for the database"},
	} {
		if _, err := store.OpenReadOnly(context.Background(), tt.path, tt.built); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.path, err, tt.want)
		}
	}
}
