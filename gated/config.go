package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/migrations"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// maxRetentionDays is a century: more is a mistake, and would overflow.
const maxRetentionDays = 36500

// Config is read from the environment.
type Config struct {
	config.Base
	Addr config.Addr `env:"GATED_ADDR" envDefault:"127.0.0.1:8080" doc:"where it listens"`
	URL  config.URL  `env:"GATED_URL" doc:"where the commands find it; default: its socket in the data folder"`

	Groups []string `env:"GATED_GROUPS" doc:"groups whose agents this gated runs, such as acme,acme/*, if several machines share the database; default: all"`

	MCPAddr config.Addr `env:"GATED_MCP_ADDR" envDefault:"127.0.0.1:8084" doc:"where it serves the tools of agents, at /mcp"`
	MCPURL  config.URL  `env:"AGENT_MCP_URL" doc:"where agents reach the tools, as in http://172.17.0.1:8084/mcp; default: GATED_MCP_ADDR"`

	RoutdURL config.URL `env:"ROUTD_URL" doc:"where routd is called; default: its socket in the data folder"`
	OnbodURL config.URL `env:"ONBOD_URL" doc:"where onbod is called; default: its socket in the data folder"`
	DashdURL config.URL `env:"DASHD_URL" doc:"where dashd is called; default: its socket in the data folder"`
	Daemons  []string   `env:"DAEMONS" doc:"further daemons that routes may name: name for one that listens on run/name.http.sock in the data folder, name=url for one elsewhere, which is sent signed requests"`

	AgentConfig
	EgressConfig
	ContextConfig

	MaxAgents     int              `env:"MAX_AGENTS" envDefault:"5" doc:"how many agents may be busy at once"`
	AgentIdle     time.Duration    `env:"AGENT_IDLE" envDefault:"60s" doc:"how long an idle agent is kept running"`
	AgentTimeout  time.Duration    `env:"AGENT_TIMEOUT" envDefault:"20m" doc:"how long a busy agent may write no frame before it is stopped"`
	AskTimeout    time.Duration    `env:"ASK_TIMEOUT" envDefault:"10m" doc:"how long a question of an agent is open; no answer within it counts as no; at most 24h"`
	WaitMark      time.Duration    `env:"WAIT_MARK" envDefault:"2s" doc:"how long a message may wait for its agent before it gets 👀 as a reaction, where the platform has reactions; 0 for never"`
	TurnAttempts  int              `env:"TURN_ATTEMPTS" envDefault:"3" doc:"attempts of a turn before it fails"`
	AssistantName string           `env:"ASSISTANT_NAME" envDefault:"arizuko" doc:"the name on answers; also the bot's after the @ of a command"`
	BotNames      []string         `env:"BOT_NAMES" doc:"further names of the bot after the @ of a command, as in /new@name"`
	Operators     config.Operators `env:"OPERATORS" doc:"senders that may do everything, as telegram:123,slack:U0AB"`

	RetentionDays int   `env:"RETENTION_DAYS" envDefault:"0" doc:"history older than this many days is deleted; 0 keeps everything"`
	MediaQuota    int64 `env:"MEDIA_QUOTA" envDefault:"2147483648" doc:"what all files of messages may take on the disk, in bytes: gated removes the oldest that no open turn needs"`
	MediaDaily    int64 `env:"MEDIA_DAILY" envDefault:"209715200" doc:"files of one chat that may be stored in a day, received and sent, in bytes"`

	UndoQuota int64 `env:"UNDO_QUOTA" envDefault:"209715200" doc:"what is kept of each group's files for /undo, in bytes: the oldest goes first; 0 keeps nothing, so that /undo leaves files alone"`

	PollInterval     time.Duration `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often the database is read without a poke"`
	MaxAge           time.Duration `env:"MAX_AGE" envDefault:"24h" doc:"messages older than this on arrival are observed, not answered"`
	ImpulseThreshold int           `env:"IMPULSE_THRESHOLD" envDefault:"100" doc:"summed weight that releases a chat's held rows; a message weighs 100; the same as routd's"`
	ImpulseMaxHold   time.Duration `env:"IMPULSE_MAX_HOLD" envDefault:"5m" doc:"the longest hold of a row; the same as routd's"`
}

// Validate checks rules beyond the types.
func (c *Config) Validate() []error {
	var all []error
	problem := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	all = append(all, c.validateAgents()...)
	for name, n := range map[string]int{"MAX_AGENTS": c.MaxAgents, "TURN_ATTEMPTS": c.TurnAttempts,
		"IMPULSE_THRESHOLD": c.ImpulseThreshold} {
		if n < 1 {
			problem("%s: must be at least 1", name)
		}
	}
	for name, d := range map[string]time.Duration{"AGENT_TIMEOUT": c.AgentTimeout, "ASK_TIMEOUT": c.AskTimeout,
		"MAX_AGE": c.MaxAge, "POLL_INTERVAL": c.PollInterval, "IMPULSE_MAX_HOLD": c.ImpulseMaxHold,
		"CONTEXT_TTL_MEDIUM": c.ContextTTLMedium, "CONTEXT_TTL_MEDIA": c.ContextTTLMedia,
		"CONTEXT_TTL_SHORT": c.ContextTTLShort, "CONTEXT_POLL_GRACE": c.ContextPollGrace,
		"CONTEXT_TTL_MAX": c.ContextTTLMax} {
		if err := config.CheckInterval(name, d); err != nil {
			all = append(all, err)
		}
	}
	for name, size := range map[string]int64{"MEDIA_QUOTA": c.MediaQuota, "MEDIA_DAILY": c.MediaDaily} {
		if size < 1 {
			problem("%s: must be above 0", name)
		}
	}
	if c.UndoQuota < 0 {
		problem("UNDO_QUOTA: must not be negative")
	}
	if c.AskTimeout > 24*time.Hour {
		problem("ASK_TIMEOUT: must be at most 24h")
	}
	if c.WaitMark < 0 {
		problem("WAIT_MARK: must not be negative")
	}
	if c.AgentIdle < 0 {
		problem("AGENT_IDLE: must not be negative")
	}
	days := time.Duration(c.RetentionDays) * 24 * time.Hour
	if days > 0 && c.ContextTTLMax > days { // objects do not outlive the messages that they come from
		problem("CONTEXT_TTL_MAX: %s is longer than RETENTION_DAYS", c.ContextTTLMax)
	}
	if c.RetentionDays != 0 && (c.RetentionDays < 1 || days < c.MaxAge || c.RetentionDays > maxRetentionDays) {
		problem("RETENTION_DAYS: must be 0, or from 1 to %d and not below MAX_AGE", maxRetentionDays)
	}
	if _, err := c.daemonURLs(); err != nil {
		all = append(all, err)
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all
}

// names are the names of the assistant that hold for all groups.
func (c *Config) names() []string { return append(slices.Clone(c.BotNames), c.AssistantName) }

// daemonURLs are the URLs of DAEMONS by name, "" for one that listens on its socket in the data folder.
func (c *Config) daemonURLs() (map[string]string, error) {
	urls := map[string]string{}
	for _, entry := range c.Daemons {
		name, base, given := strings.Cut(entry, "=")
		u, err := url.Parse(base)
		if name == "" || strings.Contains(name, "/") || given &&
			(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return nil, fmt.Errorf("DAEMONS: %q is neither name nor name=http://host:port/path", entry)
		}
		urls[name] = base
	}
	return urls, nil
}

// read reads the database itself, so that gated need not run.
func (c *Config) read(ctx context.Context, fn func(store.Reader) error) error {
	st, err := store.OpenReadOnly(ctx, c.Database(), migrations.Latest())
	if err != nil {
		return err
	}
	return errors.Join(fn(st.Reader), st.Close())
}

// client returns a client of the running gated.
func (c *Config) client() (*httpx.Client, error) { return daemon.ClientOf(c.Base, "gated", c.URL) }

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }

// environ is gated's environment. Agents get the variables that AGENT_ENV and their groups name.
func environ() []string { return os.Environ() }

// ContextConfig is the part of Config about active context objects.
type ContextConfig struct {
	ContextTTLMedium time.Duration          `env:"CONTEXT_TTL_MEDIUM" envDefault:"2h" doc:"how long an article, summary or link stays an active context object after its last touch"`
	ContextTTLMedia  time.Duration          `env:"CONTEXT_TTL_MEDIA" envDefault:"1h" doc:"the same for images, videos, voice messages and documents"`
	ContextTTLShort  time.Duration          `env:"CONTEXT_TTL_SHORT" envDefault:"20m" doc:"the same for reminders and messages"`
	ContextPollGrace time.Duration          `env:"CONTEXT_POLL_GRACE" envDefault:"15m" doc:"how long a poll stays active after it was closed"`
	ContextTTLMax    time.Duration          `env:"CONTEXT_TTL_MAX" envDefault:"24h" doc:"the longest time that an object other than a poll stays active, however often it is touched"`
	ContextWeights   contextobjects.Weights `env:"CONTEXT_WEIGHTS" envDefault:"reply_chain=100,topic=60,recent=30,explicit=20,kind=20,open=15,owned=10,fallback=-30,near_expiry=-15" doc:"what each fact adds to an active object's rank, as name=number,…; those left out keep their default"`
}

func (c ContextConfig) contextObjects() *contextobjects.Objects {
	return &contextobjects.Objects{Weights: c.ContextWeights, TTLs: contextobjects.TTLs{
		Medium: c.ContextTTLMedium, Media: c.ContextTTLMedia, Short: c.ContextTTLShort, PollGrace: c.ContextPollGrace,
		Max: c.ContextTTLMax,
	}}
}
