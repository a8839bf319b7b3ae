package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	talk := func(topic, id string) {
		turn := queued(t, s, func(turn *msg.Turn) { turn.Topic = topic })
		run := begun(t, s, turn)
		frame := answer(run, turn, "ok")
		frame.SessionID = id
		reply(t, s, frame, 300)
		write(t, s, func(tx *store.Tx) error { return tx.EndRun(run.ID, "", 400) })
	}
	talk("", "one")
	talk("#a", "two")
	talk("", "three")
	for topic, want := range map[string]string{"": "three", "#a": "two", "#b": ""} {
		if got := must(s.Session(t.Context(), folder, topic))(t); got != want {
			t.Errorf("topic %q: %q, want %q", topic, got, want)
		}
	}
	write(t, s, func(tx *store.Tx) error { _, err := tx.EvictSession(folder, "", ""); return err })
	if got := must(s.Session(t.Context(), folder, ""))(t); got != "" {
		t.Errorf("evicted: %q", got)
	}
	if got := must(s.Session(t.Context(), folder, "#a"))(t); got != "two" {
		t.Errorf("another topic: %q", got)
	}
}

// A topic has one session for each agent, and the last of them is the topic's.
func TestSessions_OfSeveralAgents_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	talk := func(agent, id string) int64 {
		turn := queued(t, s)
		run := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", Agent: agent, StartedAt: 200}
		write(t, s, func(tx *store.Tx) error { return tx.StartRun(run, turn.ID) })
		frame := answer(run, turn, "ok")
		frame.SessionID, frame.Agent = id, agent
		reply(t, s, frame, 300)
		write(t, s, func(tx *store.Tx) error { return tx.EndRun(run.ID, "", 400) })
		return run.ID
	}
	check := func(when, topic, own, codex string) {
		t.Helper()
		got := []string{
			must(s.Session(t.Context(), folder, ""))(t), must(s.AgentSession(t.Context(), folder, "", ""))(t), must(s.AgentSession(t.Context(), folder, "", "codex"))(t),
		}
		if diff := cmp.Diff([]string{topic, own, codex}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	talk("", "d1")
	check("before", "d1", "d1", "")
	talk("codex", "c1")
	check("switched", "c1", "d1", "c1")
	last := talk("", "d2")
	check("switched back", "d2", "d2", "c1")
	if agent, known, err := s.LastAgent(t.Context(), folder, "", last); agent != "codex" || !known || err != nil {
		t.Errorf("before the last run answered %q, %v, %v", agent, known, err)
	}
	var evicted []bool
	write(t, s, func(tx *store.Tx) error {
		for _, agent := range []string{"codex", "codex"} {
			was, err := tx.EvictSession(folder, "", agent)
			if err != nil {
				return err
			}
			evicted = append(evicted, was)
		}
		return nil
	})
	check("evicted", "d2", "d2", "")
	if diff := cmp.Diff([]bool{true, false}, evicted); diff != "" {
		t.Error(diff)
	}
	talk("codex", "c2")
	write(t, s, func(tx *store.Tx) error { _, err := tx.ResetSession(folder, "", 1); return err })
	check("reset", "", "", "")
}

func TestSessionLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	second := piped(t, s, run)
	for range 2 { // the turn is made of three rows
		m := inbound(t, s, chat, "more")
		decide(t, s, m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: first.ID})
	}
	part := answer(run, first, "part")
	part.Final, part.SessionID = false, "one"
	reply(t, s, part, 300)
	reply(t, s, answer(run, first, "rest"), 310)
	reply(t, s, answer(run, first, "extra"), 315)
	decide(t, s, second.TriggerMessageID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: second.ID})
	reply(t, s, answer(run, second, "ok"), 320)
	write(t, s, func(tx *store.Tx) error { return tx.EndRun(run.ID, "", 400) })
	next := begun(t, s, queued(t, s)) // begins with the stored session
	elsewhere := begun(t, s, queued(t, s, func(turn *msg.Turn) { turn.Topic = "#else" }))

	old := store.PastSession{StartedAt: 200, EndedAt: 400, SessionID: "one", Result: "ok", MessageCount: 4}
	open := store.PastSession{StartedAt: 200, SessionID: "one"}
	for _, tt := range []struct {
		name      string
		beforeRun int64
		limit     int
		want      []store.PastSession
	}{
		{"of the first run", run.ID, 5, nil},
		{"of the second run", next.ID, 5, []store.PastSession{old}},
		{"of a third run", elsewhere.ID + 1, 5, []store.PastSession{open, old}},
		{"the newest", elsewhere.ID + 1, 1, []store.PastSession{open}},
	} {
		if diff := cmp.Diff(tt.want, must(s.PastSessions(t.Context(), folder, "", tt.beforeRun, tt.limit))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestClaimSystemMessages_EndedTurn_ClaimsNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := queued(t, s)
	write(t, s, func(tx *store.Tx) error {
		if err := tx.CancelTurn(turn.ID, msg.ReasonCancelled, 1); err != nil {
			return err
		}
		return tx.PutSystemMessage(folder, "gated", "new_session", "", 1)
	})
	write(t, s, func(tx *store.Tx) error { return tx.ClaimSystemMessages(folder, turn.ID) })
	if !must(s.PromptFacts(t.Context(), &msg.Turn{Folder: folder}, 0, 0))(t).SystemWaits {
		t.Error("the line is lost")
	}
}

func TestSystemMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	say := func(folder, event string) {
		write(t, s, func(tx *store.Tx) error { return tx.PutSystemMessage(folder, "gated", event, "body", 1) })
	}
	claim := func(turn *msg.Turn) {
		write(t, s, func(tx *store.Tx) error { return tx.ClaimSystemMessages(folder, turn.ID) })
	}
	lines := func(turn *msg.Turn) (events []string) {
		t.Helper()
		for _, m := range must(s.TurnSystemMessages(t.Context(), turn.ID))(t) {
			if m.Origin != "gated" || m.Body != "body" || m.ID == 0 {
				t.Errorf("%+v", m)
			}
			events = append(events, m.Event)
		}
		return events
	}
	waits := func(want bool) {
		t.Helper()
		if got := must(s.PromptFacts(t.Context(), &msg.Turn{Folder: folder}, 0, 0))(t).SystemWaits; got != want {
			t.Errorf("lines wait: %v, want %v", got, want)
		}
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	first, second, third := queued(t, s), queued(t, s), queued(t, s)
	waits(false)
	say(folder, "new_session")
	say("else", "not_ours")
	say(folder, "new_day")
	waits(true)
	claim(first)
	waits(false)
	check("claimed", lines(first), "new_session", "new_day")

	// A retry has the same lines; those of a cancelled turn go to the next turn.
	say(folder, "later")
	write(t, s, func(tx *store.Tx) error {
		return tx.RequeueTurn(first.ID, store.Requeue{Attempt: true, Problem: "broke"})
	})
	claim(second)
	check("of the retried turn", lines(first), "new_session", "new_day")
	check("of the next turn", lines(second), "later")
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(first.ID, msg.ReasonCancelled, 1) })
	check("of the cancelled turn", lines(first))
	waits(true)
	claim(third)
	check("of the turn after it, in whose session the first line would be wrong", lines(third), "new_day")

	run := begun(t, s, third)
	reply(t, s, answer(run, third, "ok"), 300)
	check("of the answered turn", lines(third))
	waits(false)
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(second, msg.TurnFailed, msg.ReasonAgentError, "broke", 310)
	})
	waits(true)
	if n := get[int](t, s, `SELECT count(*) FROM system_messages`); n != 2 {
		t.Errorf("%d lines left, want the failed turn's and the other folder's", n)
	}
}
