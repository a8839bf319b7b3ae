package main

import (
	"errors"
	"os"
	"regexp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is the configuration of discd, from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr    config.Addr     `env:"DISCD_ADDR" envDefault:"127.0.0.1:8092" doc:"address it listens on"`
	Account adapter.Account `env:"DISCD_ACCOUNT" doc:"name of a further account, as in work: its chats are discord+work:…, and this daemon is discd+work; the first one has none"`
	Token   string          `env:"DISCORD_BOT_TOKEN" secret:"true" doc:"the bot's token, from the developer portal"`
	APIURL  config.URL      `env:"DISCORD_API_URL" envDefault:"https://discord.com" doc:"URL of Discord"`
}

// Common implements adapter.Config.
func (c Config) Common() adapter.Common {
	return adapter.Common{Base: c.Base, Settings: c.Settings, Addr: c.Addr, Account: c.Account}
}

// Validate returns the invalid values that the types accept.
func (c *Config) Validate() []error {
	errs := c.Problems()
	if c.Token == "" {
		errs = append(errs, errors.New("DISCORD_BOT_TOKEN: is not set; "+
			"https://discord.com/developers/applications, Bot, Reset Token shows one"))
	}
	if methodPath().MatchString(string(c.APIURL)) {
		errs = append(errs, errors.New("DISCORD_API_URL: ends before /api, as in https://discord.com"))
	}
	return append(errs, adapter.TokenProblem("DISCORD_BOT_TOKEN", c.Token))
}

// methodPath matches the URL of a method, or the part of it that is the same for all.
func methodPath() *regexp.Regexp { return regexp.MustCompile(`://.*/api(/v\d+.*)?$`) }

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
