package rows_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestActiveLanes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if lanes := storetest.Must(adapterrows.ActiveLanes(t.Context(), s.Reader, "telegram"))(t); lanes != nil {
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
		turns = append(turns, gatedtest.Queued(t, s, set))
		runs = append(runs, gatedtest.Begun(t, s, turns[i]))
	}
	gatedtest.Queued(t, s, in("telegram:2", "", "#i"))  // not started yet
	gatedtest.Queued(t, s, in("telegram:-1", "", "#d")) // after the one that runs
	expect := func(want ...store.Lane) {
		t.Helper()
		got := storetest.Must(adapterrows.ActiveLanes(t.Context(), s.Reader, "telegram"))(t)
		slices.SortFunc(got, func(a, b store.Lane) int {
			return strings.Compare(a.ChatJID+" "+a.ThreadID, b.ChatJID+" "+b.ThreadID)
		})
		differ(t, "got", got, want)
	}
	expect(store.Lane{ChatJID: "telegram:-1"}, store.Lane{ChatJID: "telegram:1"}, store.Lane{ChatJID: "telegram:1", ThreadID: "7"})
	gatedtest.StoreReply(t, s, gatedtest.Answer(runs[0], turns[0], "done"), 300)
	gatedtest.StoreReply(t, s, gatedtest.Answer(runs[1], turns[1], "done"), 300)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, turns[3].ID, msg.ReasonCancelled, 300) })
	expect(store.Lane{ChatJID: "telegram:1", ThreadID: "7"}) // the other turn of it
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
