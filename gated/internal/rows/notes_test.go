package rows_test

import (
	"slices"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// The notes of changed messages become a turn of their own, unless a later message is queued: it has them in order.
func TestPutNotes_LaterTurnQueued_LeavesThemToIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inChat := func(turn *msg.Turn) { turn.ThreadID, turn.Place = "", "" }
	first := gatedtest.Queued(t, s, inChat)
	gatedtest.Begun(t, s, first)
	running := storetest.Must(s.Turn(t.Context(), first.ID))(t)
	note := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbEdit, TargetID: "native-1"})
	storetest.Decide(t, s, note.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: storetest.Folder})
	later := gatedtest.Queued(t, s, inChat)
	storetest.Write(t, s, func(tx *store.Tx) error {
		notes, err := rows.PutNotes(tx, running, 300)
		if notes != nil {
			t.Errorf("notes %+v beside the queued turn %d", notes, later.ID)
		}
		return err
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.TakeTurn(tx, later.ID, running.RunID, 300) })
	if m := storetest.Must(s.Message(t.Context(), note.ID))(t); m.TurnID != later.ID {
		t.Errorf("the note is of turn %d, want %d", m.TurnID, later.ID)
	}
}

func TestAttachNotes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	note := func(chatJID, routedTo, thread string, reason msg.Reason) int64 {
		m := storetest.Inbound(t, s, chatJID, "edited")
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: reason, RoutedTo: routedTo, ThreadID: thread})
		return m.ID
	}
	mine := note(storetest.Chat, storetest.Folder, "thread", msg.ReasonEditNote)
	others := []int64{
		note("telegram:-2", storetest.Folder, "thread", msg.ReasonEditNote), note(storetest.Chat, "else", "thread", msg.ReasonEditNote),
		note(storetest.Chat, storetest.Folder, "", msg.ReasonEditNote), note(storetest.Chat, storetest.Folder, "thread", msg.ReasonRouteObserve),
	}
	first, second := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.AttachNotes(tx, first) })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.AttachNotes(tx, second) })
	if got := storetest.Must(s.Message(t.Context(), mine))(t).TurnID; got != first.ID {
		t.Errorf("the note went to turn %d, want %d", got, first.ID)
	}
	for _, id := range others {
		if got := storetest.Must(s.Message(t.Context(), id))(t).TurnID; got != 0 {
			t.Errorf("row %d went to turn %d", id, got)
		}
	}
	var ids []int64
	for _, m := range storetest.Must(factrows.TurnMessages(t.Context(), s.Reader, first.ID))(t) {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, []int64{mine, first.TriggerMessageID}) {
		t.Errorf("rows of the turn: %v", ids)
	}
}
