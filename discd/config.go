package main

import (
	"errors"
	"os"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is the configuration of discd, from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr   config.Addr `env:"DISCD_ADDR" envDefault:"127.0.0.1:8092" doc:"address it listens on"`
	Token  string      `env:"DISCORD_BOT_TOKEN" secret:"true" doc:"the bot's token, from the developer portal"`
	APIURL config.URL  `env:"DISCORD_API_URL" envDefault:"https://discord.com" doc:"URL of Discord"`
}

// Common implements adapter.Config.
func (c Config) Common() adapter.Common {
	return adapter.Common{Base: c.Base, Settings: c.Settings, Addr: c.Addr}
}

// Validate returns the invalid values that the types accept.
func (c *Config) Validate() []error {
	errs := c.Problems()
	if c.Token == "" {
		errs = append(errs, errors.New("DISCORD_BOT_TOKEN: is not set; https://discord.com/developers/applications, Bot, Reset Token shows one"))
	}
	return errs
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
