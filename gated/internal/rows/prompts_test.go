package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	put := func(run *msg.Run, text string) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return rows.PutProgress(tx, *run, first.ID, &store.Progress{State: agentproto.StatusRunning, Text: text, UpdatedAt: 5})
		}
	}
	progress := func() *store.Progress {
		t.Helper()
		p, err := s.Progress(t.Context(), first.ID)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := progress(); p != nil {
		t.Errorf("before the first event: %+v", p)
	}
	storetest.Write(t, s, put(run, "one"))
	storetest.Write(t, s, put(run, "two"))
	want := &store.Progress{State: agentproto.StatusRunning, Text: "two", Plan: []agentproto.Step{}, Tools: []agentproto.Tool{}, UpdatedAt: 5}
	differ(t, "got", progress(), want)
	refused(t, s, "another run", put(&msg.Run{ID: run.ID + 1}, "three"))
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.RequeueTurn(tx, first.ID, rows.Requeue{}) })
	if p := progress(); p != nil {
		t.Errorf("of a turn that is queued again: %+v", p)
	}
	refused(t, s, "a turn that is queued again", put(run, "late"))
}

func TestSystemMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	say := func(folder, event string) {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutSystemMessage(folder, "gated", event, "body", 1) })
	}
	claim := func(turn *msg.Turn) {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClaimSystemMessages(tx, storetest.Folder, turn.ID) })
	}
	lines := func(turn *msg.Turn) (events []string) {
		t.Helper()
		for _, m := range storetest.Must(rows.TurnSystemMessages(t.Context(), s.Reader, turn.ID))(t) {
			if m.Origin != "gated" || m.Body != "body" || m.ID == 0 {
				t.Errorf("%+v", m)
			}
			events = append(events, m.Event)
		}
		return events
	}
	waits := func(want bool) {
		t.Helper()
		if got := storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, &msg.Turn{Folder: storetest.Folder}, 0, 0, 0))(t).SystemWaits; got != want {
			t.Errorf("lines wait: %v, want %v", got, want)
		}
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		differ(t, what, got, want)
	}
	first, second, third := gatedtest.Queued(t, s), gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	waits(false)
	say(storetest.Folder, "new_session")
	say("else", "not_ours")
	say(storetest.Folder, "new_day")
	waits(true)
	claim(first)
	waits(false)
	check("claimed", lines(first), "new_session", "new_day")

	// A retry has the same lines; those of a cancelled turn go to the next turn.
	say(storetest.Folder, "later")
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, first.ID, rows.Requeue{Attempt: true, Problem: "broke"})
	})
	claim(second)
	check("of the retried turn", lines(first), "new_session", "new_day")
	check("of the next turn", lines(second), "later")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, first.ID, msg.ReasonCancelled, 1) })
	check("of the cancelled turn", lines(first))
	waits(true)
	claim(third)
	check("of the turn after it, in whose session the first line would be wrong", lines(third), "new_day")

	run := gatedtest.Begun(t, s, third)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, third, "ok"), 300)
	check("of the answered turn", lines(third))
	waits(false)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, second, msg.TurnFailed, msg.ReasonAgentError, "broke", 310)
	})
	waits(true)
	claim(first) // which has ended: it claims none
	waits(true)
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM system_messages`); n != 2 {
		t.Errorf("%d lines left, want the failed turn's and the other folder's", n)
	}
}

func TestPromptFacts_Unseen(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, turn)
	unseen := func(turn *msg.Turn, upto int64) bool {
		t.Helper()
		return storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, turn, run.ID, upto, 0))(t).Unseen
	}
	if unseen(turn, 0) {
		t.Error("a chat with nothing but the turn's row has others")
	}
	part := gatedtest.Answer(run, turn, "part")
	part.Final = false
	gatedtest.StoreReply(t, s, part, 300)
	second := gatedtest.Piped(t, s, run)
	storetest.Decide(t, s, second.TriggerMessageID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: second.ID})
	if unseen(second, turn.TriggerMessageID) {
		t.Error("an answer of the run itself counts as unseen")
	}
	if !unseen(second, 0) {
		t.Error("the first turn's row does not count for a run that was not shown it")
	}
	storetest.Inbound(t, s, storetest.Chat, "aside")
	if !unseen(second, turn.TriggerMessageID) {
		t.Error("another row does not count")
	}
}

func TestPromptFacts_Elsewhere(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	elsewhere := func(through int64) bool {
		t.Helper()
		return storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, turn, 0, 0, through))(t).Elsewhere
	}
	observe(t, s, nil)
	before := lastDecision(t, s)
	observe(t, s, func(m *msg.Message, _ *store.Decision) { m.ChatJID = storetest.Chat })
	observe(t, s, func(_ *msg.Message, d *store.Decision) { d.RoutedTo = "else" })
	if !elsewhere(0) || elsewhere(before) {
		t.Error("a first prompt looks, a later one only for rows of other chats of the group")
	}
	observe(t, s, nil)
	if !elsewhere(before) || elsewhere(lastDecision(t, s)) {
		t.Error("a row of another chat is to be shown once")
	}
}
