package main

import (
	"errors"
	"os"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is what slakd takes from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr          config.Addr `env:"SLAKD_ADDR" envDefault:"127.0.0.1:8093" doc:"where it listens"`
	BotToken      string      `env:"SLACK_BOT_TOKEN" secret:"true" doc:"the bot's token, xoxb-…, from OAuth & Permissions"`
	AppToken      string      `env:"SLACK_APP_TOKEN" secret:"true" doc:"the app's token, xapp-…, with connections:write: events come by Socket Mode"`
	SigningSecret string      `env:"SLACK_SIGNING_SECRET" secret:"true" doc:"what Slack signs events with, where they are posted to /slack/events instead: only without SLACK_APP_TOKEN"`
	APIURL        config.URL  `env:"SLACK_API_URL" envDefault:"https://slack.com/api/" doc:"where the Web API is"`
}

// Validate finds what the types let through.
func (c *Config) Validate() []error {
	errs := c.Problems()
	switch {
	case c.BotToken == "":
		errs = append(errs, errors.New("SLACK_BOT_TOKEN: is not set; OAuth & Permissions of your app at https://api.slack.com/apps has it"))
	case strings.HasPrefix(c.BotToken, "xapp-"):
		errs = append(errs, errors.New("SLACK_BOT_TOKEN: is an app's token; the bot's begins with xoxb-"))
	}
	switch {
	case c.AppToken == "" && c.SigningSecret == "":
		errs = append(errs, errors.New("SLACK_APP_TOKEN: is not set; generate one with connections:write under Basic Information, App-Level Tokens, or set SLACK_SIGNING_SECRET to have events posted"))
	case strings.HasPrefix(c.AppToken, "xoxb-"):
		errs = append(errs, errors.New("SLACK_APP_TOKEN: is a bot's token; the app's begins with xapp-"))
	}
	return errs
}

// sockets says whether events come by Socket Mode.
func (c *Config) sockets() bool { return c.AppToken != "" }

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
