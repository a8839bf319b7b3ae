package groupconfig

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAgents_UnmarshalText(t *testing.T) {
	var got Agents
	if err := got.UnmarshalText([]byte(`{"codex":{"command":"exec codex","env":["OPENAI_API_KEY"]},"boxed":{"image":"reg.example/a:1","command":"run"}}`)); err != nil {
		t.Fatal(err)
	}
	want := Agents{"codex": {Command: "exec codex", Env: []string{"OPENAI_API_KEY"}}, "boxed": {Image: "reg.example/a:1", Command: "run"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if names := got.Names(); !slices.Equal(names, []string{"default", "boxed", "codex"}) {
		t.Errorf("names %v", names)
	}
	if err := got.UnmarshalText(nil); err != nil || got != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

func TestAgents_Mistakes_AreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`codex=exec codex`:                                              "must be a JSON object",
		`{"default":{"command":"x"}}`:                                   "default is the agent of groups that name none",
		`{"Codex":{"command":"x"}}`:                                     `"Codex" is no name of an agent`,
		`{"codex":{}}`:                                                  "codex: needs a command or an image",
		`{"codex":{"comand":"x"}}`:                                      `unknown setting "codex.comand"; did you mean agent.command?`,
		`{"codex":{"command":"x","name":"other"}}`:                      "codex.name: is not set here",
		`{"codex":{"image":"i","runtime":"bwrap"}}`:                     "codex.image: needs the runtime docker, not bwrap",
		`{"a":{"command":"x","env":["DASH_PASSWORD"]},"b":{"image":7}}`: "a.env: DASH_PASSWORD is a secret of arizuko",
	} {
		var got Agents
		if err := got.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestOver_NamedAgent(t *testing.T) {
	instance := Config{
		Agent: Agent{Runtime: Bwrap, Command: "exec claude", Env: []string{"KEY"}},
		Agents: Agents{
			"codex": {Command: "exec codex", Env: []string{"OPENAI"}, Model: "o1", Settings: map[string]string{"A": "1"}},
			"boxed": {Image: "i", Command: "inside"},
		},
	}
	for config, want := range map[string]Agent{
		`{}`: {Runtime: Bwrap, Command: "exec claude", Env: []string{"KEY"}, Settings: map[string]string{}},
		`{"agent":{"name":"codex"}}`: {
			Name: "codex", Runtime: Bwrap, Command: "exec codex", Env: []string{"KEY", "OPENAI"}, Model: "o1", Settings: map[string]string{"A": "1"},
		},
		`{"agent":{"name":"codex","model":"o2","runtime":"process"}}`: {
			Name: "codex", Runtime: Process, Command: "exec codex", Env: []string{"KEY", "OPENAI"}, Model: "o2", Settings: map[string]string{"A": "1"},
		},
		`{"agent":{"name":"boxed"}}`:   {Name: "boxed", Runtime: Docker, Image: "i", Command: "inside", Env: []string{"KEY"}, Settings: map[string]string{}},
		`{"agent":{"name":"default"}}`: {Runtime: Bwrap, Command: "exec claude", Env: []string{"KEY"}, Settings: map[string]string{}},
	} {
		c, err := Parse(json.RawMessage(config))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Over(instance).Agent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", config, diff)
		}
	}
	if err := instance.Agents.Check("codex"); err != nil {
		t.Error(err)
	}
	if err := instance.Agents.Check("gone"); err == nil || !strings.Contains(err.Error(), `no agent "gone"; AGENTS has: default, boxed, codex`) {
		t.Error(err)
	}
}
