package webchat

import (
	"encoding/json"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// queued stores a turn of a place in a topic, and returns its run, which has not begun, and its id.
func queued(t *testing.T, r *fixture, place, topic string) (*msg.Run, int64) {
	t.Helper()
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "web:main", Topic: topic, Place: place, TriggerMessageID: r.said(t, place, "go")}
	r.write(t, func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, turn, 0); return err })
	return &msg.Run{Folder: "main", Topic: topic, ChatJID: "web:main", Runtime: "process"}, turn.ID
}

// working starts a turn at a place, and returns its run and id.
func working(t *testing.T, r *fixture, place string) (*msg.Run, int64) {
	t.Helper()
	run, turn := queued(t, r, place, place)
	r.write(t, func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, turn) })
	return run, turn
}

func (r *fixture) write(t *testing.T, do func(*store.Tx) error) {
	t.Helper()
	if err := r.st.Write(t.Context(), do); err != nil {
		t.Fatal(err)
	}
	r.hub.Notify()
}

// register makes main a group with a config.
func (r *fixture) register(t *testing.T, config string) {
	t.Helper()
	r.sql(t, `INSERT INTO registered_groups (folder, name, config, created_at) VALUES ('main', 'Main', ?, 1)
		ON CONFLICT (folder) DO UPDATE SET config = excluded.config`, config)
}

// progress reads up to the next progress.
func (s *stream) progress() (p progress) {
	s.t.Helper()
	e := s.next()
	for e.name == "typing" {
		e = s.next()
	}
	if err := json.Unmarshal([]byte(e.data), &p); e.name != "progress" || err != nil || e.id != 0 {
		s.t.Fatalf("event %s %d %s (%v)", e.name, e.id, e.data, err)
	}
	p.RunningMS = 0
	return p
}

func stored(text string, at int64) *store.Progress {
	return &store.Progress{
		State: agentproto.StatusRunning, Text: text, UpdatedAt: at,
		Plan:  []agentproto.Step{{Content: "Look", Status: agentproto.StepInProgress}},
		Tools: []agentproto.Tool{{ID: "1", Title: "Read notes.md", Kind: "read", Status: agentproto.ToolRunning}},
	}
}

func TestEvents_Progress_NewestWins(t *testing.T) {
	r := newFixture(t)
	r.register(t, `{}`)
	run, turn := working(t, r, "#a")
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.want("typing", `{"topics":["#a"]}`)
	put := func(text string, at int64) {
		t.Helper()
		r.write(t, func(tx *store.Tx) error { return gatedtest.PutProgress(tx, *run, turn, stored(text, at)) })
	}
	want := func(text string, at int64) progress {
		p := stored(text, at)
		return progress{TurnID: turn, Topic: "#a", State: p.State, Text: &text, Tools: p.Tools, Plan: p.Plan, UpdatedAt: at}
	}
	put("one <b>", 5)
	first := want("one <b>", 5)
	first.HTML = "<p>one &lt;b&gt;</p>\n"
	if diff := cmp.Diff(first, s.progress()); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	r.hub.Notify() // nothing has changed
	put("", 6)
	if diff := cmp.Diff(want("", 6), s.progress()); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
	late := r.follow(t, "main", "?view=page", "")
	defer late.close()
	if p := late.progress(); p.Text != nil || p.UpdatedAt != 6 {
		t.Errorf("of a page that comes later: %+v", p)
	}
}

// A turn ends for a page once its answer was sent: it would be gone for a moment otherwise.
func TestEvents_Progress_EndsAfterTheAnswer(t *testing.T) {
	r := newFixture(t)
	r.register(t, `{}`)
	run, turn := working(t, r, "")
	r.write(t, func(tx *store.Tx) error { return gatedtest.PutProgress(tx, *run, turn, stored("all", 5)) })
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.progress()
	answer := r.answered(t, "all", msg.OutQueued)
	r.write(t, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, turn, msg.ReasonRoute, 1) })
	s.want("typing", `{"topics":[]}`)
	r.settle(t, answer, msg.OutSent)
	r.hub.Notify()
	if e := s.next(); e.name != "message" || e.id != answer {
		t.Errorf("the next event is %s %d %s", e.name, e.id, e.data)
	}
	if p := s.progress(); p.TurnID != turn || p.State != stateEnded || *p.Text != "" {
		t.Errorf("the end is %+v", p)
	}
}

func TestEvents_Progress_DeadTurn_Ends(t *testing.T) {
	r := newFixture(t)
	r.register(t, `{}`)
	run, turn := working(t, r, "")
	r.write(t, func(tx *store.Tx) error { return gatedtest.PutProgress(tx, *run, turn, stored("half", 5)) })
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.progress()
	r.write(t, func(tx *store.Tx) error { return gatedtest.RequeueTurn(tx, turn, gatedtest.Requeue{Attempt: true}) })
	if p := s.progress(); p.State != stateEnded {
		t.Errorf("the end is %+v", p)
	}
}

func TestProgress_ByConfig(t *testing.T) {
	r := newFixture(t)
	run, turn := working(t, r, "#a")
	r.write(t, func(tx *store.Tx) error { return gatedtest.PutProgress(tx, *run, turn, stored("**half**", 5)) })
	type answer struct {
		Shows string
		Turns []progress
	}
	for config, want := range map[string]struct {
		shows string
		turns int
		html  string
	}{
		`{}`:                    {"live", 1, "<p><strong>half</strong></p>\n"},
		`{"progress":"live"}`:   {"live", 1, "<p><strong>half</strong></p>\n"},
		`{"progress":"status"}`: {"status", 1, ""},
		`{"progress":"off"}`:    {"off", 0, ""},
	} {
		r.config = config
		got := get[answer](t, r, "/main/progress?view=page")
		if got.Shows != want.shows || len(got.Turns) != want.turns {
			t.Errorf("%s: %+v", config, got)
			continue
		}
		if want.turns == 1 && (got.Turns[0].HTML != want.html || got.Turns[0].Text != nil || got.Turns[0].Topic != "#a" || len(got.Turns[0].Tools) != 1) {
			t.Errorf("%s: %+v", config, got.Turns[0])
		}
	}
}
