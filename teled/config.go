package main

import (
	"errors"
	"os"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is what teled takes from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr   config.Addr `env:"TELED_ADDR" envDefault:"127.0.0.1:8091" doc:"where it listens"`
	Token  string      `env:"TELEGRAM_BOT_TOKEN" secret:"true" doc:"the bot's token, from @BotFather"`
	APIURL config.URL  `env:"TELEGRAM_API_URL" envDefault:"https://api.telegram.org" doc:"where the Bot API is"`
}

// Validate finds what the types let through.
func (c *Config) Validate() []error {
	errs := c.Problems()
	if c.Token == "" {
		errs = append(errs, errors.New("TELEGRAM_BOT_TOKEN: is not set; ask @BotFather for one"))
	}
	return errs
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
