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

func TestModel_Chosen_NextAnswerIsOfIt(t *testing.T) {
	f := start(t, harness.Options{})
	f.Answer(f.Say("telegram:5", "one"))
	if got := f.Reply(f.Say("telegram:5", "/model loud")).Content; got != "Only operators may do that." {
		t.Errorf("a member gets %q", got)
	}
	if got := order(f, "/model"); !strings.Contains(got, "- loud: Loud") {
		t.Errorf("shown %q", got)
	}
	if got := order(f, "/model loud"); got != "loud is the model from the next message on. The conversation goes on." {
		t.Errorf("replied %q", got)
	}
	if got := f.Answer(f.Say("telegram:5", "two")); !strings.Contains(got, "You said: TWO") {
		t.Errorf("answered %q", got)
	}
}

func TestAgent_NotConfigured_ChatGetsNoticeAndOperatorHelps(t *testing.T) {
	f := start(t, harness.Options{Env: twoAgents})
	if err := f.Routd.Do(t.Context(), "PATCH", "/v1/groups/main", map[string]any{"config": map[string]any{"agent": map[string]any{"name": "gone"}}}, nil); err != nil {
		t.Fatal(err)
	}
	f.WaitEnded(f.Say("telegram:5", "one"))
	if got := f.Outbound("telegram:5"); len(got) != 1 || !strings.Contains(got[0].Content, "the agent is not set up correctly") {
		t.Errorf("sent %+v", got)
	}
	if got := order(f, "/agent"); !strings.HasPrefix(got, "The agent of this group is gone, which is not configured") {
		t.Errorf("shown %q", got)
	}
	order(f, "/agent two")
	if got := f.Answer(f.Say("telegram:5", "two")); !strings.Contains(got, "You said: two") {
		t.Errorf("answered %q", got)
	}
}

// The turn under way is ended by the agent that began it; what comes meanwhile, in any chat of the group, is for the next one.
func TestAgent_SwitchedInATurn_LaterMessagesAreForTheNewOne(t *testing.T) {
	f := start(t, harness.Options{Env: twoAgents})
	slow := f.Say("telegram:5", "fold slow 3 one")
	f.WaitRunning(slow)
	orders := []msg.Message{
		{ChatJID: "telegram:5", Sender: operator, Content: "/agent two"}, {ChatJID: "telegram:6", Sender: operator, Content: "/agent two"},
		{ChatJID: "telegram:6", Sender: "telegram:6", Content: "/agent default"},
	}
	for i, row := range f.Put(orders...) {
		got := f.Reply(row).Content
		if refused := got == "Only operators may do that."; refused != (i == 2) || !refused && !strings.HasPrefix(got, "two answers") && !strings.HasPrefix(got, "two is the agent") {
			t.Errorf("order %d: replied %q", i, got)
		}
	}
	f.Answer(f.Say("telegram:5", "two"))
	f.Answer(f.Say("telegram:6", "three"))
	f.WantEchoes("telegram:5", "fold slow 3 one", "two")
	f.WantEchoes("telegram:6", "three")
	got := f.Query(`SELECT agent FROM session_log WHERE folder = 'main' ORDER BY id`)
	if !slices.Equal(got, []string{"", "two", "two"}) {
		t.Errorf("the runs were of %q", got)
	}
	wantNoRetries(f)
}
