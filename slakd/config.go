package main

import (
	"errors"
	"os"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is the configuration of slakd, from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr          config.Addr     `env:"SLAKD_ADDR" envDefault:"127.0.0.1:8093" doc:"address it listens on"`
	Account       adapter.Account `env:"SLAKD_ACCOUNT" doc:"name of a further account, as in work: its chats are slack+work:…, and this daemon is slakd+work; the first one has none"`
	BotToken      string          `env:"SLACK_BOT_TOKEN" secret:"true" doc:"the bot's token, xoxb-…, from OAuth & Permissions"`
	AppToken      string          `env:"SLACK_APP_TOKEN" secret:"true" doc:"the app's token, xapp-…, with connections:write: events come by Socket Mode"`
	SigningSecret string          `env:"SLACK_SIGNING_SECRET" secret:"true" doc:"secret that Slack signs events with, if they are posted to /slack/events instead: only without SLACK_APP_TOKEN"`
	UserApps      []string        `env:"SLACK_USER_APPS" doc:"ids of apps, as in A0AB12CD3, whose posts with a user's own token count as that user's; BOTS applies to those of others"`
	APIURL        config.URL      `env:"SLACK_API_URL" envDefault:"https://slack.com/api/" doc:"URL of the Web API"`
}

// Common implements adapter.Config.
func (c Config) Common() adapter.Common {
	return adapter.Common{
		Base: c.Base, Settings: c.Settings, Addr: c.Addr, Account: c.Account, NeedsPort: !c.socketMode(),
	}
}

// Validate returns the invalid values that the types accept.
func (c *Config) Validate() []error {
	errs := c.Problems()
	switch {
	case c.BotToken == "":
		errs = append(errs, errors.New("SLACK_BOT_TOKEN: is not set; OAuth & Permissions of your app at "+
			"https://api.slack.com/apps has it"))
	case strings.HasPrefix(c.BotToken, "xapp-"):
		errs = append(errs, errors.New("SLACK_BOT_TOKEN: is an app token; the bot's begins with xoxb-"))
	}
	switch {
	case c.AppToken == "" && c.SigningSecret == "":
		errs = append(errs, errors.New("SLACK_APP_TOKEN: is not set; generate one with connections:write under Basic "+
			"Information, App-Level Tokens, or set SLACK_SIGNING_SECRET if events are posted"))
	case strings.HasPrefix(c.AppToken, "xoxb-"):
		errs = append(errs, errors.New("SLACK_APP_TOKEN: is a bot token; the app's begins with xapp-"))
	}
	if !strings.HasSuffix(string(c.APIURL), "/api") {
		errs = append(errs, errors.New("SLACK_API_URL: must end with /api/, as in https://slack.com/api/"))
	}
	for variable, token := range map[string]string{"SLACK_BOT_TOKEN": c.BotToken, "SLACK_APP_TOKEN": c.AppToken,
		"SLACK_SIGNING_SECRET": c.SigningSecret} {
		errs = append(errs, adapter.TokenProblem(variable, token))
	}
	return errs
}

// socketMode reports whether events come by Socket Mode; else they are posted.
func (c *Config) socketMode() bool { return c.AppToken != "" }

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
