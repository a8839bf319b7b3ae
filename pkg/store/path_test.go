package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/migrations"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestRunsDuring(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	// run starts a run at 10·n and ends it 5 later, with an error where n is odd.
	run := func(n int64) int64 {
		turn := queued(t, s)
		r := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", StartedAt: 10 * n}
		write(t, s, func(tx *store.Tx) error {
			if err := tx.StartRun(r, turn.ID); err != nil {
				return err
			}
			return tx.EndRun(r.ID, strings.Repeat("x", int(n%2)), 10*n+5)
		})
		return r.ID
	}
	ids := []int64{run(1), run(2), run(3), run(4)}
	for _, tt := range []struct {
		name        string
		folder      string
		from, until int64
		limit       int
		want        []int64
	}{
		{"all", folder, 0, 100, 9, ids},
		{"those within", folder, 20, 35, 9, ids[1:3]},
		{"those that reach into it", folder, 15, 30, 9, ids[:3]},
		{"the newest", folder, 0, 100, 2, ids[2:]},
		{"another folder's", "other", 0, 100, 9, nil},
	} {
		var got []int64
		for _, r := range must(s.RunsDuring(t.Context(), tt.folder, "", tt.from, tt.until, tt.limit))(t) {
			got = append(got, r.ID)
			if failed := r.StartedAt/10%2 == 1; failed != (r.Result == "error" && r.Error == "x") {
				t.Errorf("%s: run %d is %q, %q", tt.name, r.ID, r.Result, r.Error)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestRunsDuring_RunIsLive_IsShown(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run := begun(t, s, queued(t, s)) // at 200
	if got := must(s.RunsDuring(t.Context(), folder, "", 1000, 2000, 1))(t); len(got) != 1 || got[0].ID != run.ID || got[0].EndedAt != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	out := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Content: "hi", Timestamp: 1, ReceivedAt: 1, OutState: msg.OutQueued})
	if got := must(s.Parts(t.Context(), out.ID))(t); got != nil {
		t.Errorf("before it is claimed: %+v", got)
	}
	first := store.Delivery{MessageID: out.ID, Part: 0, State: msg.OutSent, PlatformID: "9"}
	second := store.Delivery{MessageID: out.ID, Part: 1, State: msg.OutQueued, Attempts: 2, NotBefore: 77, ErrorClass: msg.Rate, Error: "slow down"}
	write(t, s, func(tx *store.Tx) error { return tx.PutDelivery(second, 40) })
	write(t, s, func(tx *store.Tx) error { return tx.PutDelivery(first, 50) })
	want := []store.PartState{{Delivery: first, UpdatedAt: 50}, {Delivery: second, UpdatedAt: 40}}
	if diff := cmp.Diff(want, must(s.Parts(t.Context(), out.ID))(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOwnReplies(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := queued(t, s)
	row := func(m msg.Message) int64 {
		m.Timestamp, m.ReceivedAt = 1, 1
		return stored(t, s, &m).ID
	}
	out := msg.Message{ChatJID: chat, Direction: msg.Out, ReplyToID: "p1", Source: msg.SourceCommand, OutState: msg.OutQueued}
	row(out) // came before the row
	asked := &msg.Message{ChatJID: chat, PlatformID: "p1", Direction: msg.In, Timestamp: 1, ReceivedAt: 1}
	stored(t, s, asked)
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
	if got := must(s.OwnReplies(t.Context(), asked))(t); len(got) != 1 || got[0].ID != want {
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
		if m := must(r.Message(t.Context(), 1))(t); m == nil || m.Content != want {
			t.Errorf("%s: it reads %+v", name, m)
		}
	}
	s, err := store.Open(t.Context(), store.Options{Path: path, Autocheckpoint: store.DefaultAutocheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 1})
	read("while a daemon has it", "hi")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read("when no daemon has it", "hi")
	if store.IsServer(path) {
		return
	}
	before := must(os.ReadFile(path))(t)
	read("again", "hi")
	if diff := cmp.Diff(len(before), len(must(os.ReadFile(path))(t))); diff != "" {
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
