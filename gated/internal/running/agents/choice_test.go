package agents

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// named adds an agent that groups may name: the scripted one.
func named(name string) func(*Config) {
	return func(cfg *Config) {
		if cfg.Defaults.Agents == nil {
			cfg.Defaults.Agents = groupconfig.Agents{}
		}
		cfg.Defaults.Agents[name] = groupconfig.Agent{Command: "exec '" + os.Args[0] + "'", Settings: map[string]string{"WHO": name}}
	}
}

// starts are the start lines that the agents of main got.
func (r *harness) starts() (all []given) {
	r.t.Helper()
	return slices.DeleteFunc(r.inputs("main"), func(g given) bool { return g.start().TurnID == "" })
}

func TestChoice_Switch_EachAgentHasItsOwnSession(t *testing.T) {
	t.Parallel()
	r := newHarness(t, named("codex"))
	r.answered(r.ask("!session of-default; say the secret is 7"))
	r.configure("main", `{"agent":{"name":"codex"}}`)
	r.answered(r.ask("!session of-codex; say two"), r.ask("three"))
	r.configure("main", `{"agent":{"model":null,"name":"default"}}`)
	r.configure("main", `{}`)
	r.answered(r.ask("four"))
	r.configure("main", `{"agent":{"name":"codex"}}`)
	r.answered(r.ask("five"))

	starts := r.starts()
	var sessions []string
	for _, g := range starts {
		sessions = append(sessions, g.start().SessionID)
	}
	diff(t, "sessions given", sessions, []string{"", "", "of-default", "of-codex"})
	second := starts[1].prompt
	if len(second.System) != 1 || second.System[0].Event != "new_session" || !strings.Contains(second.System[0].Body, "switched the group to you from another agent") ||
		!strings.Contains(second.System[0].Body, `of the agent "default"`) {
		t.Errorf("the new agent gets %+v", second.System)
	}
	if !strings.Contains(second.Window, "the secret is 7") {
		t.Errorf("the new agent sees of the conversation %q", second.Window)
	}
	for i, other := range map[int]string{2: `"codex" has answered`, 3: `"default" has answered`} {
		back := starts[i].prompt
		if len(back.System) != 1 || back.System[0].Event != "agent_switched" || !strings.Contains(back.System[0].Body, other) {
			t.Errorf("start %d: the agent that answers again gets %+v", i, back.System)
		}
	}
}

// A /new ends the sessions of all agents, and the failure of one only its own.
func TestChoice_SessionEnds_OthersGoOnUnlessItWasReset(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end     func(*harness)
		resumed string
	}{
		"reset":           {func(r *harness) { r.reset("main", "") }, ""},
		"the agent fails": {func(r *harness) { r.await(r.ask("!error no"), msg.TurnFailed) }, "of-default"},
	} {
		r := newHarness(t, named("codex"), attempts(1))
		r.answered(r.ask("!session of-default; say one"))
		r.configure("main", `{"agent":{"name":"codex"}}`)
		r.answered(r.ask("!session of-codex; say two"))
		tt.end(r)
		r.configure("main", `{}`)
		r.answered(r.ask("three"))
		starts := r.starts()
		if got := starts[len(starts)-1].start().SessionID; got != tt.resumed {
			t.Errorf("%s: the agent of before resumes %q", name, got)
		}
	}
}

func TestChoice_Switch_WarmAgentEnds_TurnUnderWayIsFinished(t *testing.T) {
	t.Parallel()
	r := newHarness(t, named("codex"))
	r.answered(r.ask("one"))
	warm := r.inputs("main")[0].pid
	r.configure("main", `{"agent":{"name":"codex"}}`)
	r.until("the warm agent has ended", func() bool { return syscall.Kill(warm, 0) != nil })

	open := r.gate("main", "busy")
	busy := r.ask("!hold busy; say by codex")
	r.until("it works", func() bool { return len(r.inputs("main")) == 2 })
	r.configure("main", `{}`)
	next := r.ask("next")
	open()
	diff(t, "answers", r.answered(busy, next), []string{"by codex", "re: next"})
	inputs := r.inputs("main")
	if len(inputs) != 3 || inputs[2].pid == inputs[1].pid {
		t.Errorf("the message after the switch went to the agent of before: %+v", inputs)
	}
	for _, turn := range []*msg.Turn{busy, next} {
		if got := r.turn(turn.ID).Attempts; got != 0 {
			t.Errorf("turn %d has lost %d attempts", turn.ID, got)
		}
	}
}

func TestChoice_UnknownAgent_FailsWithItsName(t *testing.T) {
	t.Parallel()
	r := newHarness(t, named("codex"))
	r.configure("main", `{"agent":{"name":"gemini"}}`)
	failed := r.await(r.ask("hello"), msg.TurnFailed)
	if !strings.Contains(failed.Error, `there is no agent "gemini"; AGENTS has: default, codex`) || failed.Attempts != 1 {
		t.Errorf("%q after %d attempts", failed.Error, failed.Attempts)
	}
	if replies := r.replies(failed); len(replies) != 1 || !strings.Contains(replies[0], "not set up correctly") {
		t.Errorf("the chat sees %q", replies)
	}
}

func TestChoice_Model_IsOfferedStoredAndGiven(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	offer := `!event {"type":"models","current":"small","models":[{"id":"small","name":"Small\nmodel"},{"id":"big hunter2"}]}; session s1; say one`
	r.answered(r.ask(offer))
	got := must[agentproto.Models](r)(factrows.AgentModels(t.Context(), r.st.Reader, "main", ""))
	diff(t, "models", got, agentproto.Models{Current: "small", Models: []agentproto.Model{{ID: "small", Name: "Small model"}, {ID: "big ***"}}})
	r.configure("main", `{"agent":{"model":"small"}}`)
	r.answered(r.ask("two"))
	if start := r.starts()[1].start(); start.Model != "small" || start.SessionID != "s1" {
		t.Errorf("the next agent gets the model %q and session %q", start.Model, start.SessionID)
	}
}

func TestChoice_EndlessOffers_AreStoredAFewTimes(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	var orders []string
	for i := range maxOffers + 5 {
		orders = append(orders, `event {"type":"models","models":[{"id":"m`+strings.Repeat("x", i)+`"}]}`)
	}
	r.answered(r.ask("!" + strings.Join(orders, ";") + ";say done"))
	got := must[agentproto.Models](r)(factrows.AgentModels(t.Context(), r.st.Reader, "main", ""))
	if len(got.Models) != 1 || len(got.Models[0].ID) != maxOffers {
		t.Errorf("stored %+v", got)
	}
}
