package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"arizuko/deploy/agents/internal/permission"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/config"
)

// Config is the part of the environment that the agent reads. The CLI gets the whole environment, with
// its credentials.
type Config struct {
	Command        string   `env:"CLAUDE_COMMAND" envDefault:"claude" doc:"Claude Code's program: a path, or a name in PATH"`
	Model          string   `env:"CLAUDE_MODEL" doc:"the model of groups that choose none, by its name or an alias such as sonnet; default: Claude Code's"`
	AgentModel     string   `env:"AGENT_MODEL" doc:"the model that the group has chosen (agent.model, /model); gated sets it"`
	Models         []string `env:"CLAUDE_MODELS" envDefault:"sonnet,opus,haiku" doc:"models that /model offers, by their names or aliases"`
	PermissionMode string   `env:"CLAUDE_PERMISSION_MODE" envDefault:"acceptEdits" doc:"acceptEdits, dontAsk, plan, bypassPermissions or another mode of Claude Code's"`
	Permissions    string   `env:"CLAUDE_PERMISSIONS" envDefault:"ask" doc:"what to do about tools that need a permission: ask the users who may give it (approvers of the group's configuration), or deny"`
	AllowedTools   string   `env:"CLAUDE_ALLOWED_TOOLS" doc:"tools that need no permission, besides arizuko's own, in Claude Code's notation: Bash(git *),WebFetch"`
	Args           []string `env:"CLAUDE_ARGS" envSeparator:" " doc:"further arguments of Claude Code, separated by spaces"`
	MaxRetries     int      `env:"CLAUDE_CODE_MAX_RETRIES" envDefault:"4" doc:"how often a call of the model's API is retried; 4 retries take about ten seconds"`
	ConfigDir      string   `env:"CLAUDE_CONFIG_DIR" envDefault:".claude" doc:"where Claude Code keeps conversations and settings, relative to the group's folder; groups with the same absolute path share them"`

	environ []string
	secrets config.Redactor
}

// Validate checks rules that the types cannot express.
func (c *Config) Validate() error {
	if c.MaxRetries < 0 {
		return errors.New("CLAUDE_CODE_MAX_RETRIES: must not be negative")
	}
	return permission.CheckSetting("CLAUDE_PERMISSIONS", c.Permissions)
}

func loadConfig() (Config, error) {
	cfg, err := config.Load[Config](os.Environ())
	if err != nil {
		return cfg, err
	}
	cfg.environ = os.Environ()
	cfg.secrets = config.NewRedactor(config.SecretValues(cfg.environ)...)
	cfg.ConfigDir, err = filepath.Abs(cfg.ConfigDir)
	return cfg, err
}

func (c *Config) redact(text string) string { return c.secrets.String(text) }

// hide adds a secret to the redacted ones.
func (c *Config) hide(secret string) {
	c.secrets = config.NewRedactor(append(config.SecretValues(c.environ), secret)...)
}

// chosen is the model that is asked for, "" for Claude Code's default.
func (c *Config) chosen() string { return cmp.Or(c.AgentModel, c.Model) }

// offered are the models that users may choose. current is the one in use.
func (c *Config) offered(current string) agentproto.Models {
	m := agentproto.Models{Current: current}
	for _, name := range c.Models {
		if name = strings.TrimSpace(name); name != "" {
			m.Models = append(m.Models, agentproto.Model{ID: name})
		}
	}
	return m
}

// cliEnviron is the CLI's environment: that of the agent, and settings that suit a run without a
// terminal, unless the environment sets them otherwise.
func (c *Config) cliEnviron() []string {
	env := slices.DeleteFunc(slices.Clone(c.environ), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return value == "" || name == "CLAUDE_CODE_MAX_RETRIES" || name == "CLAUDE_CONFIG_DIR"
	})
	env = append(env, "CLAUDE_CODE_MAX_RETRIES="+strconv.Itoa(c.MaxRetries), "CLAUDE_CONFIG_DIR="+c.ConfigDir)
	for _, entry := range []string{
		"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		// With search enabled, the model does not see its tools until it searches for them.
		"ENABLE_TOOL_SEARCH=false",
		// A call of ask_user waits for a user, for a day at most. Without the second one the CLI gives a call up after
		// five minutes without a message of the server.
		"MCP_TOOL_TIMEOUT=90000000", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=90000000",
		// Nothing may outlive the run, and a run without a turn soon ends.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_DISABLE_CRON=1",
	} {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(env, func(set string) bool { return strings.HasPrefix(set, name+"=") }) {
			env = append(env, entry)
		}
	}
	return env
}

// disabledTools wait for input at a terminal or for a time after the run, speak to other agents of the machine, are for
// a developer's repository, or read again files that the model has just written. Their descriptions were 31 of the 66
// kB of a first request.
const disabledTools = "AskUserQuestion,EnterPlanMode,ExitPlanMode,ScheduleWakeup," +
	"Monitor,TaskStop,TaskGet,TaskList,ListAgents,SendMessage,Workflow,EnterWorktree,ExitWorktree,ReportFindings"

// planTools are those by which the model keeps the plan that users see. The CLI offers them only if they are named.
const planTools = createTask + "," + updateTask

// maxSystem bounds the system text, in bytes: Linux takes no argument above 128 KiB.
const maxSystem = 64 << 10

// cliArgs are the CLI's arguments. resume are those that resume a session, if any; mcp is the path of
// the tools' configuration, "" for none; system is added to the CLI's own system prompt. Values that could
// begin with a dash follow an equals sign.
func (c *Config) cliArgs(resume []string, mcp, system string) []string {
	args := []string{
		"-p", "--verbose", "--input-format=stream-json", "--output-format=stream-json", "--include-partial-messages",
		"--permission-prompt-tool=stdio", "--permission-mode=" + c.PermissionMode, "--disallowedTools=" + disabledTools,
		"--strict-mcp-config",
	}
	allowed := strings.TrimPrefix(c.AllowedTools+","+planTools, ",")
	if mcp != "" {
		args = append(args, "--mcp-config="+mcp)
		allowed += ",mcp__" + mcpServer
	}
	args = append(args, "--allowedTools="+allowed)
	if model := c.chosen(); model != "" {
		args = append(args, "--model="+model)
	}
	if system = strings.ReplaceAll(system, "\x00", ""); system != "" {
		args = append(args, "--append-system-prompt="+agentproto.Truncate(system, maxSystem))
	}
	args = append(args, resume...)
	return append(args, slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return arg == "" })...)
}
