package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/deploy/agents/internal/permission"
	"arizuko/pkg/config"
)

// Config is the part of the environment that this program reads. The agent gets the whole environment, with its
// credentials.
type Config struct {
	Model        string        `env:"ACP_MODEL" doc:"the model of groups that choose none, by the name that the agent has for it; default: the agent's own"`
	AgentModel   string        `env:"AGENT_MODEL" doc:"the model that the group has chosen (agent.model, /model); gated sets it"`
	Mode         string        `env:"ACP_MODE" doc:"the session mode, by the name that the agent has for it, such as acceptEdits; default: the agent's default"`
	Permissions  string        `env:"ACP_PERMISSIONS" envDefault:"ask" doc:"what to do about tools that need a permission: ask the users who may give it (approvers of the group's configuration), or deny"`
	AuthMethod   string        `env:"ACP_AUTH_METHOD" doc:"the agent's authentication method if it asks for one; default: the one that is named like a variable that is set, such as gemini-api-key for GEMINI_API_KEY"`
	StartTimeout time.Duration `env:"ACP_START_TIMEOUT" envDefault:"60s" doc:"how long the agent may take for each step of its start: initialize, authenticate, and to open the session"`

	command []string
	folder  string // where it runs, absolute
	environ []string
	secrets config.Redactor
}

// Validate checks rules that the types cannot express.
func (c *Config) Validate() error {
	if c.StartTimeout <= 0 {
		return errors.New("ACP_START_TIMEOUT: must be above 0")
	}
	return permission.CheckSetting("ACP_PERMISSIONS", c.Permissions)
}

func loadConfig(command []string) (Config, error) {
	cfg, err := config.Load[Config](os.Environ())
	if err != nil {
		return cfg, err
	}
	cfg.command, cfg.environ = command, os.Environ()
	cfg.secrets = config.NewRedactor(config.SecretValues(cfg.environ)...)
	cfg.folder, err = filepath.Abs(".")
	return cfg, err
}

// name is the name of the agent's program.
func (c *Config) name() string { return filepath.Base(c.command[0]) }

func (c *Config) redact(text string) string { return c.secrets.String(text) }

// hide adds a secret to the redacted ones.
func (c *Config) hide(secret string) {
	c.secrets = config.NewRedactor(append(config.SecretValues(c.environ), secret)...)
}

// isSet reports whether a variable of the environment has a value.
func (c *Config) isSet(variable string) bool { return c.value(variable) != "" }

// value is that of a variable of the environment.
func (c *Config) value(variable string) (value string) {
	for _, entry := range c.environ {
		if name, v, _ := strings.Cut(entry, "="); name == variable {
			value = v
		}
	}
	return value
}

// maxToolCall is how long a call of a tool may take, in milliseconds: a question of ask_user is open for a day at most.
const maxToolCall = 90_000_000

// agentEnviron is the agent's environment: that of this program, and, unless they are set, the limits of a call of a
// tool for agents that take one from there: those that run Claude Code, and OpenCode.
func (c *Config) agentEnviron() []string {
	env := slices.Clone(c.environ)
	for _, name := range []string{"MCP_TOOL_TIMEOUT", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"} {
		if !c.isSet(name) {
			env = append(env, fmt.Sprintf("%s=%d", name, maxToolCall))
		}
	}
	if config, ok := opencodeConfig(c.value(opencodeVariable)); ok {
		env = append(env, opencodeVariable+"="+config) // the last one counts
	}
	return env
}

// opencodeVariable is where OpenCode reads a configuration from, as JSON, that comes after those of its files.
const opencodeVariable = "OPENCODE_CONFIG_CONTENT"

// opencodeConfig is a configuration of OpenCode with the limit of a call of a tool. It reports false if it has one, or
// cannot be read: that is for OpenCode to say.
func opencodeConfig(text string) (config string, ok bool) {
	var whole, experimental map[string]json.RawMessage
	if json.Unmarshal([]byte(cmp.Or(text, "{}")), &whole) != nil || whole == nil {
		return "", false
	}
	if given := whole["experimental"]; given != nil &&
		(json.Unmarshal(given, &experimental) != nil || experimental["mcp_timeout"] != nil) {
		return "", false
	}
	if experimental == nil {
		experimental = map[string]json.RawMessage{}
	}
	experimental["mcp_timeout"] = json.RawMessage(strconv.Itoa(maxToolCall))
	inner, err := json.Marshal(experimental)
	if err != nil {
		return "", false
	}
	whole["experimental"] = inner
	outer, err := json.Marshal(whole)
	return string(outer), err == nil
}
