package main

import (
	"slices"
	"testing"
)

func TestAgentEnviron_LimitsOfToolCalls_AreSetUnlessGiven(t *testing.T) {
	for given, want := range map[string]string{
		"": `{"experimental":{"mcp_timeout":90000000}}`,
		`{"model":"a/b","experimental":{"primary_tools":["x"]}}`: `{"experimental":{"mcp_timeout":90000000,"primary_tools":["x"]},"model":"a/b"}`,
		`{"experimental":null}`:                                  `{"experimental":{"mcp_timeout":90000000}}`,
		`{"experimental":{"mcp_timeout":1000}}`:                  `{"experimental":{"mcp_timeout":1000}}`,
		`{"experimental":[]}`:                                    `{"experimental":[]}`,
		`{ // a comment`:                                         `{ // a comment`,
		`null`:                                                   `null`,
	} {
		c := Config{environ: []string{"MCP_TOOL_TIMEOUT=5", "OPENCODE_CONFIG_CONTENT=" + given}}
		env := c.agentEnviron()
		if last := env[len(env)-1]; given != want && last != "OPENCODE_CONFIG_CONTENT="+want {
			t.Errorf("%s: got %s, want %s", given, last, want)
		}
		if given == want && !slices.Equal(env, append(c.environ, "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=90000000")) {
			t.Errorf("%s: got %q", given, env)
		}
	}
	c := Config{}
	want := []string{"MCP_TOOL_TIMEOUT=90000000", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=90000000", `OPENCODE_CONFIG_CONTENT={"experimental":{"mcp_timeout":90000000}}`}
	if env := c.agentEnviron(); !slices.Equal(env, want) {
		t.Errorf("got %q", env)
	}
}
