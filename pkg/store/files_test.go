package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// withFiles stores a row whose attachments are still to be downloaded.
func withFiles(t testing.TB, s *store.Store, chatJID string, set ...func(*msg.Message)) *msg.Message {
	t.Helper()
	m := &msg.Message{ChatJID: chatJID, Direction: msg.In, PendingFiles: 2, Attachments: []msg.Attachment{
		{Name: "a", MIME: "text/plain", Size: 3, Ref: "f1"}, {Name: "b", Ref: "f2"},
	}}
	for _, f := range set {
		f(m)
	}
	return stored(t, s, m)
}

func wanted(m *msg.Message) { m.FilesWanted = true }

func TestWantedFiles(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if rows := must(s.WantedFiles(t.Context(), "telegram", 10))(t); rows != nil {
		t.Errorf("in an empty table: %v", rows)
	}
	inbound(t, s, chat, "without files")
	var want []int64
	for _, jid := range []string{chat, "telegram:-2", chat} {
		want = append(want, withFiles(t, s, jid, wanted).ID)
	}
	withFiles(t, s, chat)
	withFiles(t, s, "telegrams:1", wanted)
	withFiles(t, s, "web:telegram:1", wanted)
	withFiles(t, s, chat, wanted, func(m *msg.Message) { m.PendingFiles = 0 })
	withFiles(t, s, chat, wanted, func(m *msg.Message) { m.Direction = msg.Out })
	for _, limit := range []int{10, 2} {
		var got []int64
		for _, m := range must(s.WantedFiles(t.Context(), "telegram", limit))(t) {
			got = append(got, m.ID)
			if len(m.Attachments) != 2 || m.Attachments[0].Ref != "f1" {
				t.Errorf("row %+v", m)
			}
		}
		if !slices.Equal(got, want[:min(limit, 3)]) {
			t.Errorf("rows %d of %d, at most %d", got, want, limit)
		}
	}
}

func TestPutFiles(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 10)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	m := withFiles(t, s, chat)
	if got := receive(t, "the row's poke", pokes); got != "gated" {
		t.Errorf("poked %s", got)
	}
	files := []msg.Attachment{{Path: "media/202611/1-0-a", Name: "a", MIME: "text/plain", Size: 4}, {Name: "b", Error: "too large"}}
	put := func() error {
		return s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutFiles(m.ID, files) })
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "the files' poke", pokes); got != "gated" {
		t.Errorf("poked %s", got)
	}
	want := *m
	want.PendingFiles, want.Attachments = 0, files
	got := must(s.Message(t.Context(), m.ID))(t)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	files = nil
	if err := put(); !errors.Is(err, store.ErrStale) {
		t.Errorf("recorded again: %v", err)
	}
	if diff := cmp.Diff(got, must(s.Message(t.Context(), m.ID))(t)); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutFiles(1000, nil) }); !errors.Is(err, store.ErrStale) {
		t.Errorf("of no row: %v", err)
	}
	select {
	case daemon := <-pokes:
		t.Errorf("poked %s although nothing changed", daemon)
	default:
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := must(s.Thread(t.Context(), chat, "7"))(t); got != nil {
		t.Errorf("unknown thread: %+v", got)
	}
	for _, step := range []struct {
		name      string
		put, want msg.Thread
	}{
		{"new", msg.Thread{Kind: "forum_topic", Title: "Plans"}, msg.Thread{Kind: "forum_topic", Title: "Plans"}},
		{"nothing more is known", msg.Thread{}, msg.Thread{Kind: "forum_topic", Title: "Plans"}},
		{"renamed", msg.Thread{Title: "Old plans"}, msg.Thread{Kind: "forum_topic", Title: "Old plans"}},
		{"its author", msg.Thread{Author: "telegram:7"}, msg.Thread{Kind: "forum_topic", Title: "Old plans", Author: "telegram:7"}},
		{"another kind", msg.Thread{Kind: "thread"}, msg.Thread{Kind: "thread", Title: "Old plans", Author: "telegram:7"}},
	} {
		step.put.ChatJID, step.put.ID = chat, "7"
		step.want.ChatJID, step.want.ID = chat, "7"
		write(t, s, func(tx *store.Tx) error { return tx.PutThread(step.put) })
		if diff := cmp.Diff(&step.want, must(s.Thread(t.Context(), chat, "7"))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	for _, other := range [][2]string{{chat, "8"}, {"telegram:-2", "7"}, {chat, ""}} {
		if got := must(s.Thread(t.Context(), other[0], other[1]))(t); got != nil {
			t.Errorf("%q: %+v", other, got)
		}
	}
}

func TestActiveLanes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if lanes := must(s.ActiveLanes(t.Context(), "telegram"))(t); lanes != nil {
		t.Errorf("in an empty table: %v", lanes)
	}
	in := func(chatJID, thread, topic string) func(*msg.Turn) {
		return func(turn *msg.Turn) { turn.ChatJID, turn.ThreadID, turn.Topic = chatJID, thread, topic }
	}
	var runs []*msg.Run
	var turns []*msg.Turn
	for i, set := range []func(*msg.Turn){
		in("telegram:1", "", "#a"), in("telegram:1", "7", "#b"), in("telegram:1", "7", "#c"), in("telegram:-1", "", "#d"),
		in("telegrams:1", "", "#e"), in("tele:gram", "", "#g"), in("web:telegram:1", "", "#h"),
	} {
		turns = append(turns, queued(t, s, set))
		runs = append(runs, begun(t, s, turns[i]))
	}
	queued(t, s, in("telegram:2", "", "#i"))  // not started yet
	queued(t, s, in("telegram:-1", "", "#d")) // after the one that runs
	expect := func(want ...store.Lane) {
		t.Helper()
		got := must(s.ActiveLanes(t.Context(), "telegram"))(t)
		slices.SortFunc(got, func(a, b store.Lane) int {
			return strings.Compare(a.ChatJID+" "+a.ThreadID, b.ChatJID+" "+b.ThreadID)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	expect(store.Lane{ChatJID: "telegram:-1"}, store.Lane{ChatJID: "telegram:1"}, store.Lane{ChatJID: "telegram:1", ThreadID: "7"})
	reply(t, s, answer(runs[0], turns[0], "done"), 300)
	reply(t, s, answer(runs[1], turns[1], "done"), 300)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(turns[3].ID, msg.ReasonCancelled, 300) })
	expect(store.Lane{ChatJID: "telegram:1", ThreadID: "7"}) // the other turn of it
}

// TestActiveTriggers expects the user's message where the gateway derived a row from it.
func TestActiveTriggers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const chat = "slack:C1"
	post := func(id string, from int64) int64 {
		return stored(t, s, &msg.Message{ChatJID: chat, PlatformID: id, DerivedFrom: from, Direction: msg.In, Content: "hello"}).ID
	}
	plain, split := post("1.1", 0), post("1.2", 0)
	derived, internal := post("", split), post("", 0)
	var runs []*msg.Run
	var turns []*msg.Turn
	for i, trigger := range []int64{plain, derived, internal} {
		turns = append(turns, queued(t, s, func(turn *msg.Turn) {
			turn.ChatJID, turn.ThreadID, turn.TriggerMessageID, turn.Topic = chat, "1.0", trigger, fmt.Sprint("#", i)
		}))
		runs = append(runs, begun(t, s, turns[i]))
	}
	queued(t, s, func(turn *msg.Turn) { // not started yet
		turn.ChatJID, turn.ThreadID, turn.TriggerMessageID, turn.Topic = chat, "1.0", post("1.3", 0), "#later"
	})
	lane := store.Lane{ChatJID: chat, ThreadID: "1.0"}
	expect := func(in store.Lane, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, must(s.ActiveTriggers(t.Context(), in))(t)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", in, diff)
		}
	}
	expect(lane, "1.1", "1.2")
	expect(store.Lane{ChatJID: chat})
	expect(store.Lane{ChatJID: "slack:C2", ThreadID: "1.0"})
	reply(t, s, answer(runs[0], turns[0], "done"), 300)
	expect(lane, "1.2")
}

func TestWantFiles_PendingRow_PokesItsAdapterOnce(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 10)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	m, plain := withFiles(t, s, chat), inbound(t, s, chat, "without files")
	for range 2 {
		receive(t, "the poke of a row", pokes)
	}
	for range 2 {
		write(t, s, func(tx *store.Tx) error { return errors.Join(tx.WantFiles(m.ID), tx.WantFiles(plain.ID)) })
	}
	if got := receive(t, "the poke of the wish", pokes); got != "teled" || len(pokes) != 0 {
		t.Errorf("poked %s, %d more", got, len(pokes))
	}
	if !must(s.Message(t.Context(), m.ID))(t).FilesWanted || must(s.Message(t.Context(), plain.ID))(t).FilesWanted {
		t.Error("the wrong row is wanted")
	}
}
