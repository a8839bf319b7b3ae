package rows_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// A topic has one session for each agent, and the last of them is the topic's.
func TestSessions_OfSeveralAgents_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inTopic := func(topic, agent, id string) int64 {
		turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = topic })
		run := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", Agent: agent, StartedAt: 200}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.StartRun(tx, run, turn.ID) })
		frame := gatedtest.Answer(run, turn, "ok")
		frame.SessionID, frame.Agent = id, agent
		gatedtest.StoreReply(t, s, frame, 300)
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, "", 400) })
		return run.ID
	}
	talk := func(agent, id string) int64 { return inTopic("", agent, id) }
	inTopic("#a", "codex", "other")
	check := func(when, topic, own, codex string) {
		t.Helper()
		got := []string{
			storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, ""))(t), storetest.Must(rows.AgentSession(t.Context(), s.Reader, storetest.Folder, "", ""))(t), storetest.Must(rows.AgentSession(t.Context(), s.Reader, storetest.Folder, "", "codex"))(t),
		}
		differ(t, when, got, []string{topic, own, codex})
	}
	talk("", "d1")
	check("before", "d1", "d1", "")
	talk("codex", "c1")
	check("switched", "c1", "d1", "c1")
	last := talk("", "d2")
	check("switched back", "d2", "d2", "c1")
	if agent, known, err := rows.LastAgent(t.Context(), s.Reader, storetest.Folder, "", last); agent != "codex" || !known || err != nil {
		t.Errorf("before the last run answered %q, %v, %v", agent, known, err)
	}
	var evicted []bool
	storetest.Write(t, s, func(tx *store.Tx) error {
		for _, agent := range []string{"codex", "codex"} {
			was, err := rows.EvictSession(tx, storetest.Folder, "", agent)
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
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.ResetSession(tx, storetest.Folder, "", 1); return err })
	check("reset", "", "", "")
	for topic, want := range map[string]string{"#a": "other", "#b": ""} {
		if got := storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, topic))(t); got != want {
			t.Errorf("topic %q: %q, want %q", topic, got, want)
		}
	}
}

func TestSessionLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second := gatedtest.Piped(t, s, run)
	for range 2 { // the turn is made of three rows
		m := storetest.Inbound(t, s, storetest.Chat, "more")
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: first.ID})
	}
	part := gatedtest.Answer(run, first, "part")
	part.Final, part.SessionID = false, "one"
	gatedtest.StoreReply(t, s, part, 300)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "rest"), 310)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "extra"), 315)
	storetest.Decide(t, s, second.TriggerMessageID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: second.ID})
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, second, "ok"), 320)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, "", 400) })
	next := gatedtest.Begun(t, s, gatedtest.Queued(t, s)) // begins with the stored session
	elsewhere := gatedtest.Begun(t, s, gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = "#else" }))

	old := rows.PastSession{StartedAt: 200, EndedAt: 400, SessionID: "one", Result: "ok", MessageCount: 4}
	open := rows.PastSession{StartedAt: 200, SessionID: "one"}
	for _, tt := range []struct {
		name      string
		beforeRun int64
		limit     int
		want      []rows.PastSession
	}{
		{"of the first run", run.ID, 5, nil},
		{"of the second run", next.ID, 5, []rows.PastSession{old}},
		{"of a third run", elsewhere.ID + 1, 5, []rows.PastSession{open, old}},
		{"the newest", elsewhere.ID + 1, 1, []rows.PastSession{open}},
	} {
		differ(t, tt.name, storetest.Must(rows.PastSessions(t.Context(), s.Reader, storetest.Folder, "", tt.beforeRun, tt.limit))(t), tt.want)
	}
}
