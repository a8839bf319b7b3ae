package main

import (
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/agentproto"
)

// codexProgram is the program whose configuration is set by arguments, which override its files (0.16.0).
const codexProgram = "codex-acp"

// codexKeys are the variables with which codex-acp logs in.
var codexKeys = []string{"CODEX_API_KEY", "OPENAI_API_KEY"}

// codexConfig are arguments and variables of codex-acp. tools may be nil.
func codexConfig(cfg *Config, tools *agentproto.MCP) (args, env []string) {
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	if slices.ContainsFunc(codexKeys, cfg.isSet) && (cfg.AuthMethod == "" ||
		strings.HasSuffix(cfg.AuthMethod, "-api-key")) {
		// It stores the key of a login, and uses that from then on, whatever key the environment has. In memory it is
		// that of this run.
		set("cli_auth_credentials_store", `"ephemeral"`)
	}
	if tools != nil {
		// It gives up a call of a tool after two minutes, and takes another limit for servers of its configuration
		// only, not for those of a session.
		set("mcp_servers."+mcpServer, fmt.Sprintf("{url=%q,bearer_token_env_var=%q,tool_timeout_sec=%d.0}", tools.URL,
			relayToken, maxToolCall/1000))
		env = append(env, relayToken+"="+tools.Token)
	}
	return args, env
}
