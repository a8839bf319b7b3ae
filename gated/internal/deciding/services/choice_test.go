package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// withAgents makes the gateway one with the agents codex and gemini, whose routd stores the choice of main as it would.
func (h *harness) withAgents() (calls *[]string) {
	h.t.Helper()
	calls = new([]string)
	h.Routd = serve(h.t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Config struct {
				Agent map[string]any `json:"agent"`
			} `json:"config"`
		}
		if r.Method != http.MethodPatch || r.URL.Path != "/v1/groups/main" || json.NewDecoder(r.Body).Decode(&body) != nil {
			httpx.Error(w, apierr.New(apierr.BadRequest, "not expected: %s %s", r.Method, r.URL))
			return
		}
		change, _ := json.Marshal(body.Config.Agent)
		*calls = append(*calls, httpx.By(r)+" "+string(change))
		for name, value := range body.Config.Agent {
			if value == nil {
				delete(body.Config.Agent, name)
			}
		}
		h.setConfig(map[string]any{"agent": body.Config.Agent})
		httpx.JSON(w, http.StatusOK, struct{}{})
	})
	h.Defaults.Agents = groupconfig.Agents{"codex": {Command: "x"}, "gemini": {Command: "y"}}
	return calls
}

// choose is a command of an operator with its answer, and the change that routd is asked for, "" for none.
type choose struct{ text, want, call string }

func (h *harness) chooses(calls *[]string, all []choose) {
	h.t.Helper()
	for _, c := range all {
		*calls = nil
		if got := h.asks(c.text, ""); got != c.want {
			h.t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
		if got := strings.Join(*calls, "; "); got != c.call {
			h.t.Errorf("%s: routd is asked for %q, want %q", c.text, got, c.call)
		}
	}
}

func TestAgent_OperatorSwitches(t *testing.T) {
	h := parallel(t)
	calls := h.withAgents()
	h.CheckAgent = func(_ context.Context, name string) error {
		if name == "gemini" {
			return errors.New("agent gemini of AGENTS cannot be run as process: no gemini")
		}
		return nil
	}
	h.chooses(calls, []choose{
		{"/agent", "The agent of this group is default.\nAgents: default, codex, gemini.\nSwitch with /agent NAME.", ""},
		{"/agent nope", `There is no agent "nope" here. The agents are: default, codex, gemini.`, ""},
		{"/agent gemini", "Nothing is changed: gemini cannot be run here. agent gemini of AGENTS cannot be run as process: no gemini", ""},
		{"/agent Codex", "codex answers from the next message on. It sees the last messages of the conversation, not the whole of it; the files of the group stay. What is under way is finished by default.",
			`telegram:9 {"model":null,"name":"codex"}`},
		{"/agent codex", "codex is the agent of this group already.", ""},
		{"/agent", "The agent of this group is codex.\nAgents: default, codex, gemini.\nSwitch with /agent NAME.", ""},
		{"/agent default", "default answers from the next message on. It sees the last messages of the conversation, not the whole of it; the files of the group stay. What is under way is finished by codex.",
			`telegram:9 {"model":null,"name":null}`},
	})
}

func TestAgent_Member_SeesAndDoesNotSwitch(t *testing.T) {
	h := parallel(t)
	calls := h.withAgents()
	member := func(m *msg.Message) { m.Sender = "telegram:7" }
	if got := h.asks("/agent", "", member); got != "The agent of this group is default.\nAgents: default, codex, gemini." {
		t.Errorf("shown %q", got)
	}
	for _, text := range []string{"/agent codex", "/model big", "/model default"} {
		if got := h.asks(text, "", member); got != "Only operators can do that." || len(*calls) != 0 {
			t.Errorf("%s: %q, %v", text, got, *calls)
		}
	}
}

func TestWho_ListsRoles_AndARefusalNamesWhoMay(t *testing.T) {
	h := parallel(t)
	h.withAgents()
	ann := storetest.Inbound(t, h.st, storetest.Chat, "hi")
	h.write(func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET sender = 'telegram:42', sender_name = 'Ann_*' WHERE id = ?`, ann.ID)
	})
	h.setConfig(json.RawMessage(`{"roles":{"ask":["telegram:7"],"operate":["telegram:42"]}}`))
	member := func(m *msg.Message) { m.Sender = "telegram:7" }
	const list = "In the group main, where operators may do everything:\n- ask (write to the agent): operators and telegram:7\n" +
		"- approve (answer its permission requests): operators, and in a direct message its user\n" +
		"- operate (stop what others asked for, choose agent and model, raise budgets): operators and Ann\\_\\*, telegram:42"
	if got := h.asks("/who", "", member); got != list {
		t.Errorf("who:\n%s\nwant\n%s", got, list)
	}
	const refused = "Only operators and the users who operate this group (Ann\\_\\*, telegram:42) can do that."
	if got := h.asks("/agent codex", "", member); got != refused {
		t.Errorf("refused: %s", got)
	}
	h.setConfig(json.RawMessage(`{"roles":{"ask":["Dan"]},"model":"m"}`))
	if got := h.asks("/who", "", member); !strings.Contains(got, "(write to the agent): operators\n") {
		t.Errorf("of an invalid configuration: %s", got)
	}
}

func TestAgent_WithoutChoice_SaysWhy(t *testing.T) {
	h := parallel(t)
	if got := h.asks("/agent", ""); got != "The agent of this group is default. There is no other: AGENTS names none." {
		t.Errorf("no agents: %q", got)
	}
	h.withAgents()
	for config, tt := range map[string]struct{ text, want string }{
		`{"agent":{"command":"mine"}}`: {"/agent codex", choiceOwn},
		`{"agent":{"name":"gone"}}`:    {"/agent", "The agent of this group is gone, which is not configured"},
		`{"agent":7}`:                  {"/agent codex", "Nothing is changed: the config of the group is invalid: agent: must be a JSON object"},
	} {
		h.setConfig(json.RawMessage(config))
		if got := h.asks(tt.text, ""); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", config, got, tt.want)
		}
	}
}

func TestAgent_RoutdDown_SaysThatNothingIsChanged(t *testing.T) {
	h := parallel(t)
	h.Defaults.Agents = groupconfig.Agents{"codex": {Command: "x"}}
	if got := h.asks("/agent codex", ""); got != choiceDown {
		t.Errorf("%q", got)
	}
}

func TestModel_ShowsAndChooses(t *testing.T) {
	h := parallel(t)
	calls := h.withAgents()
	h.chooses(calls, []choose{
		{"/model", "No model is selected: the agent uses its default. " + noModelsKnown, ""},
		{"/model big", noModelsKnown + " `routd groups set` sets agent.model to anything.", ""},
	})
	offered := agentproto.Models{Current: "small", Models: []agentproto.Model{{ID: "small", Name: "Small"}, {ID: "big-1", Name: "Big"}}}
	h.write(func(tx *store.Tx) error { return rows.PutAgentModels(tx, "main", "", offered, 1) })
	const list = "\nModels:\n- small: Small\n- big-1: Big\nChoose with /model NAME; /model default leaves it to the agent."
	h.chooses(calls, []choose{
		{"/model", "The model is small, the agent's own choice." + list, ""},
		{"/model nope", "The agent offers no model \"nope\".\nThe model is small, the agent's own choice." + list, ""},
		{"/model BIG", "big-1 is the model from your next message on. The conversation continues.", `telegram:9 {"model":"big-1"}`},
		{"/model big-1", "big-1 is the model already.", ""},
		{"/model", "The model is big-1." + list, ""},
		{"/model default", "From the next message on the agent chooses the model itself.", `telegram:9 {"model":null}`},
	})
}

// Names of models are an agent's: they are shown as they are, and a short one does not hide another's id.
func TestModel_ManyAndOddNames(t *testing.T) {
	h := parallel(t)
	calls := h.withAgents()
	offered := agentproto.Models{Models: []agentproto.Model{
		{ID: "one", Name: "two"}, {ID: "TWO"}, {ID: "two", Name: "[free](http://evil.example)"}, {ID: "opus[1m]", Name: "**Opus**"},
	}}
	for i := len(offered.Models); i < agentproto.MaxModels; i++ {
		offered.Models = append(offered.Models, agentproto.Model{ID: fmt.Sprintf("m-%d", i)})
	}
	h.write(func(tx *store.Tx) error { return rows.PutAgentModels(tx, "main", "", offered, 1) })
	shown := h.asks("/model", "")
	for _, want := range []string{`- two: \[free\](http://evil.example)`, `- opus\[1m\]: \*\*Opus\*\*`, "and 70 more, which the dashboard lists"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	h.chooses(calls, []choose{
		{"/model two", "two is the model from your next message on. The conversation continues.", `telegram:9 {"model":"two"}`},
		{"/model TWO", "TWO is the model from your next message on. The conversation continues.", `telegram:9 {"model":"TWO"}`},
		{"/model **opus**", `opus\[1m\] is the model from your next message on. The conversation continues.`, `telegram:9 {"model":"opus[1m]"}`},
		{"/model m-99", "m-99 is the model from your next message on. The conversation continues.", `telegram:9 {"model":"m-99"}`},
	})
	const want = "The agent offers no model \"-98-\". Only the first 100 are known here: `routd groups set` sets agent.model to any other.\n"
	if got := h.asks("/model -98-", ""); !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	if got := h.asks("/model m-", ""); strings.Contains(got, "opus") || !strings.Contains(got, "- m-10") {
		t.Errorf("%s", got)
	}
}
