package main

import (
	"errors"
	"os"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is the configuration of teled, from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr   config.Addr `env:"TELED_ADDR" envDefault:"127.0.0.1:8091" doc:"address it listens on"`
	Token  string      `env:"TELEGRAM_BOT_TOKEN" secret:"true" doc:"the bot's token, from @BotFather"`
	APIURL config.URL  `env:"TELEGRAM_API_URL" envDefault:"https://api.telegram.org" doc:"URL of the Bot API"`
}

// Common implements adapter.Config.
func (c Config) Common() adapter.Common {
	return adapter.Common{Base: c.Base, Settings: c.Settings, Addr: c.Addr}
}

// Validate returns the invalid values that the types accept.
func (c *Config) Validate() []error {
	errs := c.Problems()
	if c.Token == "" {
		errs = append(errs, errors.New("TELEGRAM_BOT_TOKEN: is not set; ask @BotFather for one"))
	}
	return errs
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
