package scenarios

import (
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// twoAgents are the demo agent, and the same once more under a name.
var twoAgents = []string{`AGENTS={"two":{"command":"exec %demo"}}`}

// order writes a command of an operator and returns the reply.
func order(f *harness.Fixture, text string) string {
	f.T.Helper()
	return f.Reply(f.Put(msg.Message{ChatJID: "telegram:5", Sender: operator, Content: text})[0]).Content
}

func TestAgent_SwitchedAndBack_SessionsAreResumed(t *testing.T) {
	f := start(t, harness.Options{Env: twoAgents})
	sessions := func() []string {
		return f.Query(`SELECT agent || ' ' || session_id FROM sessions WHERE group_folder = 'main'`)
	}
	f.Answer(f.Say("telegram:5", "one"))
	first := sessions()
	if got := order(f, "/agent two"); !strings.HasPrefix(got, "two answers from the next message on.") {
		t.Errorf("replied %q", got)
	}
	f.Answer(f.Say("telegram:5", "two"))
	second := sessions()
	if len(second) != 1 || !strings.HasPrefix(second[0], "two ") {
		t.Errorf("sessions %q", second)
	}
	order(f, "/agent default")
	f.Answer(f.Say("telegram:5", "three"))
	if got := f.Query(`SELECT agent || ' ' || session_id FROM session_log WHERE folder = 'main' ORDER BY id DESC LIMIT 1`); !slices.Equal(got, first) {
		t.Errorf("the agent of before was given %q, and had %q", got, first)
	}
	f.WantEchoes("telegram:5", "one", "two", "three")
	wantNoRetries(f)
}

func TestAgent_GatedKilledDuringTheSwitch_OneAgentAnswers(t *testing.T) {
	f := start(t, harness.Options{Env: twoAgents})
	f.Answer(f.Say("telegram:5", "one"))
	id := f.Put(msg.Message{ChatJID: "telegram:5", Sender: operator, Content: "/agent two"})[0]
	f.Kill(harness.Gated)
	f.StartDaemon(harness.Gated)
	f.WaitReady(harness.Gated)
	if got := f.Reply(id).Content; !strings.HasPrefix(got, "two answers") && !strings.HasPrefix(got, "two is the agent of this group already") {
		t.Errorf("replied %q", got)
	}
	f.Answer(f.Say("telegram:5", "two"))
	if got := f.Query(`SELECT agent FROM session_log WHERE folder = 'main' ORDER BY id DESC LIMIT 1`); !slices.Equal(got, []string{"two"}) {
		t.Errorf("%q answered", got)
	}
	f.WantEchoes("telegram:5", "one", "two")
}

// acpAgents are the demo agent, and two of the Agent Client Protocol, one of them without models to choose from.
var acpAgents = []string{
	`AGENTS={"acp":{"command":"exec %acp %fakeagent"},"plain":{"command":"exec %acp %fakeagent models=none"}}`,
}

func TestAgent_OfACP_IsSwitchedAnyHow(t *testing.T) {
	f := start(t, harness.Options{Env: acpAgents})
	f.Exec(`UPDATE routes SET match = 'chat_jid=telegram:5'`)
	f.AddRoute("chat_jid=telegram:7", "other")
	wants := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f.Answer(f.Say("telegram:5", "one"))
	wants(f.Reply(f.Say("telegram:5", "/agent acp")).Content, "Only operators can do that.")
	wants(order(f, "/agent nope"), `There is no agent "nope" here. The agents are: default, acp, plain.`)
	wants(order(f, "/agent acp"), "acp answers from the next message on.")
	wants(order(f, "/agent acp"), "acp is the agent of this group already.")

	// The new agent sees the last messages and a note, and goes on with its own session.
	prompt := f.Answer(f.Say("telegram:5", "prompt"))
	wants(prompt, "You said: one")
	wants(prompt, "switched the group to you from another agent")
	slow := f.Say("telegram:5", "slow 3 say hello")
	f.WaitRunning(slow)
	wants(order(f, "/agent default"), "What is under way is finished by acp.")
	wants(f.Answer(f.Say("telegram:5", "two")), "You said: two")
	wants(f.Answer(slow), "hello")
	order(f, "/agent acp")
	wants(f.Answer(f.Say("telegram:5", "recall")), "Before: prompt | slow 3 say hello")

	// Another group has its own choice.
	wants(f.Answer(f.Say("telegram:7", "three")), "You said: three")
	wants(f.Reply(f.Put(msg.Message{ChatJID: "telegram:7", Sender: operator, Content: "/agent"})[0]).Content, "The agent of this group is default.")
	wantNoRetries(f)
}

func TestModel_OfACP_Refused_IsSaid(t *testing.T) {
	f := start(t, harness.Options{Env: acpAgents})
	wants := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	order(f, "/agent acp")
	wants(order(f, "/model large"), "No models are known yet")
	f.Answer(f.Say("telegram:5", "say one"))
	wants(order(f, "/model"), "The model is small, the agent's own choice.\nModels:\n- small: SMALL\n- large: LARGE\n- broken: BROKEN")
	wants(order(f, "/model huge"), `The agent offers no model "huge".`)
	order(f, "/model large")
	wants(f.Answer(f.Say("telegram:5", "setup")), "model large")

	// The agent refuses a model that it offers: the chat gets a notice, and operators read why.
	order(f, "/model broken")
	refused := f.Say("telegram:5", "say never")
	if turn := f.WaitEnded(refused); turn.State != msg.TurnFailed || turn.Attempts != 1 || !strings.Contains(turn.Error, `refuses the model "broken"`) {
		t.Errorf("turn %+v", turn)
	}
	sent := f.Outbound("telegram:5")
	wants(sent[len(sent)-1].Content, "Sorry, I could not answer this: the agent cannot do it.")
}
