package main

import (
	"errors"
	"os"
	"regexp"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
)

// Config is the configuration of teled, from the environment.
type Config struct {
	config.Base
	adapter.Settings
	Addr    config.Addr     `env:"TELED_ADDR" envDefault:"127.0.0.1:8091" doc:"address it listens on"`
	Account adapter.Account `env:"TELED_ACCOUNT" doc:"name of a further account, as in work: its chats are telegram+work:…, and this daemon is teled+work; the first one has none"`
	Token   string          `env:"TELEGRAM_BOT_TOKEN" secret:"true" doc:"the bot's token, from @BotFather"`
	APIURL  config.URL      `env:"TELEGRAM_API_URL" envDefault:"https://api.telegram.org" doc:"URL of the Bot API"`
	Local   bool            `env:"TELEGRAM_LOCAL" envDefault:"false" doc:"the server at TELEGRAM_API_URL is run with --local: files may have up to 100 MB, in place of 50"`
}

// Common implements adapter.Config.
func (c Config) Common() adapter.Common {
	return adapter.Common{Base: c.Base, Settings: c.Settings, Addr: c.Addr, Account: c.Account}
}

// Validate returns the invalid values that the types accept.
func (c *Config) Validate() []error {
	errs := c.Problems()
	if c.Token == "" {
		errs = append(errs, errors.New("TELEGRAM_BOT_TOKEN: is not set; ask @BotFather for one"))
	}
	if strings.HasPrefix(c.Token, "bot") {
		errs = append(errs, errors.New("TELEGRAM_BOT_TOKEN: begins with bot: it begins with the number behind that"))
	}
	if methodPath().MatchString(string(c.APIURL)) {
		errs = append(errs, errors.New("TELEGRAM_API_URL: ends before /bot, as in https://api.telegram.org"))
	}
	return append(errs, adapter.TokenProblem("TELEGRAM_BOT_TOKEN", c.Token))
}

// methodPath matches the URL of a method, or the part of it that is the same for all.
func methodPath() *regexp.Regexp { return regexp.MustCompile(`://.*/bot(\d+:.*)?$`) }

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }
