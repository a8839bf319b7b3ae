package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

func TestGroups_Patch_KeepsWhatItDoesNotName(t *testing.T) {
	f := newFixture(t)
	f.must(t, http.StatusCreated, "POST", "/v1/groups", `{"folder":"acme/eng","name":"Eng","config":{"rate":9,"agent":{"model":"m1","settings":{"A":"1"}},"limits":{"cpus":1.50}}}`)
	for _, tt := range []struct{ patch, name, config string }{
		{`{"config":{"agent":{"name":"codex","model":null}}}`, "Eng", `{"agent":{"name":"codex","settings":{"A":"1"}},"limits":{"cpus":1.50},"rate":9}`},
		{`{"config":{"rate":null,"observe":"none"}}`, "Eng", `{"agent":{"name":"codex","settings":{"A":"1"}},"limits":{"cpus":1.50},"observe":"none"}`},
		{`{"name":"Two"}`, "Two", `{"agent":{"name":"codex","settings":{"A":"1"}},"limits":{"cpus":1.50},"observe":"none"}`},
		{`{}`, "Two", `{"agent":{"name":"codex","settings":{"A":"1"}},"limits":{"cpus":1.50},"observe":"none"}`},
	} {
		var g msg.Group
		if err := json.Unmarshal([]byte(f.must(t, http.StatusOK, "PATCH", "/v1/groups/acme%2Feng", tt.patch)), &g); err != nil {
			t.Fatal(err)
		}
		if g.Name != tt.name || string(g.Config) != tt.config {
			t.Errorf("%s: %q %s, want %q %s", tt.patch, g.Name, g.Config, tt.name, tt.config)
		}
	}
}

func TestGroups_BadPatch_ChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.must(t, http.StatusCreated, "POST", "/v1/groups", `{"folder":"acme","config":{"agent":{"command":"exec me"}}}`)
	for patch, want := range map[string]string{
		`{"config":{"agent":{"name":"codex"}}}`:   "agent.name: a group has either an agent of AGENTS or a command or image of its own",
		`{"config":{"agent":{"name":"No Good"}}}`: "is no name of an agent",
		`{"config":{"agnet":1}}`:                  "did you mean agent?",
		`{"config":[]}`:                           "config: must be a JSON object",
		`{"config":7}`:                            "config: must be a JSON object",
		`{"agent":"x"}`:                           "unknown field",
	} {
		f.refused(t, apierr.BadRequest, want, "PATCH", "/v1/groups/acme", patch)
	}
	f.refused(t, apierr.NotFound, "there is no group", "PATCH", "/v1/groups/gone", `{"name":"x"}`)
	if got := f.must(t, http.StatusOK, "GET", "/v1/groups/acme", ""); !strings.Contains(got, `"config":{"agent":{"command":"exec me"}}`) {
		t.Errorf("the group is %s", got)
	}
}
