//go:build realagents

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/fakes/llm"
)

// These tests switch a group between real agents with fake models: `make acp`.

// operator is the sender with all permissions, in the chat of the tests.
const (
	operator = "telegram:99"
	room     = "telegram:5"
)

var instance = harness.NewPrograms("", "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate",
	"arizuko/deploy/agents/demo", "arizuko/deploy/agents/claude", "arizuko/deploy/agents/acp")

// group is a group whose agent is Claude Code, and can be Codex.
type group struct {
	*harness.Fixture
	anthropic *anthropic.Server
	openai    *llm.Server
}

// realGroup starts an instance with a group.
func realGroup(t *testing.T) *group {
	t.Helper()
	modules := installed(t)
	bin, err := instance.Bin()
	if err != nil {
		t.Fatal(err)
	}
	g := &group{anthropic: anthropic.New(anthropic.Options{}), openai: llm.New()}
	toAnthropic, err := g.anthropic.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.anthropic.Close() })
	toOpenAI, err := g.openai.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.openai.Close() })
	codex := fmt.Sprintf(`exec %s/acp codex-acp -c 'model_providers.fake={name="fake",base_url="%s/v1",env_key="OPENAI_API_KEY",wire_api="responses"}' -c 'model_provider="fake"'`,
		bin, toOpenAI)
	named, err := json.Marshal(map[string]any{"codex": map[string]string{"command": codex}})
	if err != nil {
		t.Fatal(err)
	}
	g.Fixture = harness.Start(t, instance, harness.Options{Agent: "exec " + bin + "/claude", MaxWait: 3 * time.Minute, Env: []string{
		"PATH=" + modules + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OPERATORS=" + operator, "AGENTS=" + string(named),
		"AGENT_ENV=ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,CLAUDE_COMMAND,OPENAI_API_KEY",
		"ANTHROPIC_API_KEY=" + g.anthropic.Key(), "ANTHROPIC_BASE_URL=" + toAnthropic, "CLAUDE_COMMAND=" + claudeCode(t), "OPENAI_API_KEY=" + llm.Key,
	}})
	g.AddGroups("main")
	g.AddRoute("", "main")
	return g
}

// installed is the folder with the commands of the agents that deploy/agents/acp pins.
func installed(t *testing.T) string {
	t.Helper()
	modules, err := filepath.Abs("../../agents/acp/node_modules/.bin")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "codex-acp"))
	}
	if err != nil {
		t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/acp`", err)
	}
	return modules
}

// order writes a command of an operator, and fails the test unless the reply contains a text.
func (g *group) order(command, want string) {
	g.T.Helper()
	row := g.Put(msg.Message{ChatJID: room, Sender: operator, Content: command})[0]
	if got := g.Reply(row).Content; !strings.Contains(got, want) {
		g.T.Fatalf("%s is replied to with %q, want %q", command, got, want)
	}
}

// wantAnswer writes a message, and fails the test unless its answer contains a text.
func (g *group) wantAnswer(text, want string) {
	g.T.Helper()
	if got := g.Answer(g.Say(room, text)); !strings.Contains(got, want) {
		g.T.Errorf("%q is answered with %q, want %q", text, got, want)
	}
}

// asked is all that a model was given with the last request that has a text, oldest first.
func asked(t *testing.T, requests []anthropic.Request, text string) (all string, model string) {
	t.Helper()
	for _, r := range slices.Backward(requests) {
		var texts []string
		for _, m := range r.Messages {
			texts = append(texts, m.Content.Text())
		}
		if all := strings.Join(texts, "\n"); strings.Contains(all, text) {
			return all, r.Model
		}
	}
	t.Fatalf("no request of %d has %q", len(requests), text)
	return "", ""
}

// wantAsked fails the test unless the last request with a text has these too.
func wantAsked(t *testing.T, requests []anthropic.Request, text string, others ...string) {
	t.Helper()
	all, _ := asked(t, requests, text)
	for _, other := range others {
		if !strings.Contains(all, other) {
			t.Errorf("the model was asked %q without %q:\n%s", text, other, all)
		}
	}
}

// ofClaude are the requests of Claude Code.
func (g *group) ofClaude() (all []anthropic.Request) {
	for _, c := range g.anthropic.MessageCalls() {
		all = append(all, c.Request)
	}
	return all
}

// ofCodex are the requests of Codex.
func (g *group) ofCodex() (all []anthropic.Request) {
	for _, c := range g.openai.Calls() {
		all = append(all, c.Request)
	}
	return all
}

// sessions are the names of the group's sessions, by agent, without what changes with each turn.
func (g *group) sessions() []string {
	g.T.Helper()
	names := g.Query(`SELECT agent || ' ' || session_id FROM sessions WHERE group_folder = 'main'`)
	for i := range names {
		names[i], _, _ = strings.Cut(names[i], "@")
	}
	return names
}

// Claude Code and Codex answer in turn, and each has its own session. Messages to the other are in the recent lines of the chat.
func TestReal_AgentSwitchedAndBack_ConversationGoesOn(t *testing.T) {
	g := realGroup(t)
	g.wantAnswer("say alpha", "alpha")
	first := g.sessions()
	g.order("/agent codex", "codex answers from the next message on.")
	g.wantAnswer("say beta", "beta")
	wantAsked(t, g.ofCodex(), "say beta", "say alpha", `event="new_session"`, "An operator has switched the group to you from another agent")
	g.wantAnswer("recall", "say beta")
	second := g.sessions()
	g.order("/agent default", "default answers from the next message on.")
	g.wantAnswer("recall", "say alpha") // of its own session
	wantAsked(t, g.ofClaude(), "recall", "say beta", `event="agent_switched"`)
	g.wantAnswer("say gamma", "gamma")
	if now := g.sessions(); !slices.Equal(now, first) {
		t.Errorf("Claude Code has the session %q, and had %q", now, first)
	}
	g.Kill(harness.Gated)
	g.Restart(harness.Gated)
	g.order("/agent codex", "codex answers from the next message on.")
	g.wantAnswer("recall", "say beta")
	wantAsked(t, g.ofCodex(), "say gamma", "say beta", `event="agent_switched"`)
	if now := g.sessions(); !slices.Equal(now, second) {
		t.Errorf("Codex has the session %q, and had %q", now, second)
	}
	if retried := g.Value(`SELECT count(*) FROM turns WHERE attempts > 0`); retried != "0" {
		t.Errorf("%s turns were retried", retried)
	}
}

// Both agents say which models they have. The chosen one is that of the next request, in the same session.
func TestReal_ModelChosen_SessionGoesOn(t *testing.T) {
	g := realGroup(t)
	g.wantAnswer("say alpha", "alpha")
	g.order("/model", "- haiku")
	g.order("/model haiku", "haiku is the model from your next message on.")
	g.wantAnswer("recall", "say alpha")
	if _, model := asked(t, g.ofClaude(), "recall"); !strings.Contains(model, "haiku") {
		t.Errorf("Claude Code has asked the model %s", model)
	}
	g.order("/agent codex", "The model is the agent's own choice again.")
	g.wantAnswer("say beta", "beta")
	_, before := asked(t, g.ofCodex(), "say beta")
	offered := g.Query(`SELECT value ->> 'id' FROM agent_models, json_each(models) WHERE folder = 'main' AND agent = 'codex'`)
	i := slices.IndexFunc(offered, func(id string) bool { return !strings.HasPrefix(id, before) })
	if i < 0 {
		t.Fatalf("Codex has asked %s, and offers %q", before, offered)
	}
	g.order("/model "+offered[i], offered[i]+" is the model from your next message on.")
	g.wantAnswer("recall", "say beta")
	if _, model := asked(t, g.ofCodex(), "recall"); !strings.HasPrefix(offered[i], model) {
		t.Errorf("Codex has asked the model %s, want %s", model, offered[i])
	}
}
