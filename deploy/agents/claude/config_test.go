package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../../../docs/reference/environment.md", "claude", Config{})
}

func load(t *testing.T, environ ...string) Config {
	t.Helper()
	cfg, err := config.Load[Config](environ)
	if err != nil {
		t.Fatal(err)
	}
	cfg.environ = environ
	return cfg
}

func TestConfig_CLIArgs_OfSettings(t *testing.T) {
	always := []string{
		"-p", "--verbose", "--input-format=stream-json", "--output-format=stream-json", "--include-partial-messages", "--permission-prompt-tool=stdio",
		"--permission-mode=acceptEdits", "--disallowedTools=" + disabledTools, "--strict-mcp-config",
	}
	tests := map[string]struct {
		environ     []string
		resume      []string
		mcp, system string
		want        []string // besides always
	}{
		"nothing": {want: []string{"--allowedTools=TaskCreate,TaskUpdate"}},
		"all": {
			[]string{"CLAUDE_MODEL=opus", "AGENT_MODEL=haiku", "CLAUDE_ALLOWED_TOOLS=Bash(git log *),WebFetch", "CLAUDE_ARGS=--add-dir  /srv --effort high "},
			[]string{"--resume=s"}, "/dev/fd/3", "--resume=x\x00\ntwo lines",
			[]string{"--mcp-config=/dev/fd/3", "--allowedTools=Bash(git log *),WebFetch,TaskCreate,TaskUpdate,mcp__arizuko", "--model=haiku", "--append-system-prompt=--resume=x\ntwo lines", "--resume=s", "--add-dir", "/srv", "--effort", "high"},
		},
		"tools alone":  {nil, nil, "/dev/fd/3", "", []string{"--mcp-config=/dev/fd/3", "--allowedTools=TaskCreate,TaskUpdate,mcp__arizuko"}},
		"CLAUDE_MODEL": {[]string{"CLAUDE_MODEL=opus"}, nil, "", "", []string{"--allowedTools=TaskCreate,TaskUpdate", "--model=opus"}},
		"AGENT_MODEL":  {[]string{"AGENT_MODEL=haiku"}, nil, "", "", []string{"--allowedTools=TaskCreate,TaskUpdate", "--model=haiku"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, tt.environ...)
			if diff := cmp.Diff(append(slices.Clone(always), tt.want...), cfg.cliArgs(tt.resume, tt.mcp, tt.system)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfig_CLIEnviron_DefaultsYieldToSettings(t *testing.T) {
	tests := map[string]struct{ environ, want []string }{
		"defaults": {nil, []string{
			"CLAUDE_CODE_MAX_RETRIES=4", "CLAUDE_CONFIG_DIR=/groups/main/x",
			"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"ENABLE_TOOL_SEARCH=false", "MCP_TOOL_TIMEOUT=90000000", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=90000000", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_DISABLE_CRON=1",
		}},
		"set": {
			[]string{"ANTHROPIC_API_KEY=k", "DISABLE_TELEMETRY=0", "DISABLE_AUTOUPDATER=", "CLAUDE_CODE_MAX_RETRIES=1", "CLAUDE_CONFIG_DIR=x"},
			[]string{
				"ANTHROPIC_API_KEY=k", "DISABLE_TELEMETRY=0", "CLAUDE_CODE_MAX_RETRIES=1", "CLAUDE_CONFIG_DIR=/groups/main/x",
				"DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"ENABLE_TOOL_SEARCH=false", "MCP_TOOL_TIMEOUT=90000000", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=90000000", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_DISABLE_CRON=1",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, tt.environ...)
			cfg.ConfigDir = "/groups/main/x"
			if diff := cmp.Diff(tt.want, cfg.cliEnviron()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfig_Hide_RedactsAddedSecret(t *testing.T) {
	cfg := Config{environ: []string{"ANTHROPIC_API_KEY=the-key-0001"}}
	cfg.hide("the-token-0002")
	if got := cfg.redact("the-key-0001 the-token-0002 other"); strings.Contains(got, "the-") || !strings.HasSuffix(got, " other") {
		t.Errorf("got %q", got)
	}
}
