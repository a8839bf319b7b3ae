package main

import (
	"errors"
	"os"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// Config is routd's environment.
type Config struct {
	config.Base
	Addr             config.Addr      `env:"ROUTD_ADDR" envDefault:"127.0.0.1:8081" doc:"where it listens"`
	URL              config.URL       `env:"ROUTD_URL" doc:"where the routes and groups commands find it; default: its socket in the data folder"`
	DashdURL         config.URL       `env:"DASHD_URL" doc:"where routd sends test deliveries of hooks; default: dashd's socket in the data folder"`
	DashdAddr        config.Addr      `env:"DASHD_ADDR" envDefault:"127.0.0.1:8083" doc:"the same as dashd's, for the addresses of hooks"`
	PublicURL        config.URL       `env:"DASH_PUBLIC_URL" doc:"the same as dashd's, for the addresses of hooks"`
	PollInterval     time.Duration    `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often it looks for routes and groups changed by SQL"`
	EngagementTTL    time.Duration    `env:"ENGAGEMENT_TTL" envDefault:"20m" doc:"how long a group answers without being called after each of its answers"`
	ImpulseThreshold int              `env:"IMPULSE_THRESHOLD" envDefault:"100" doc:"summed weight that releases a chat's held rows; a message weighs 100"`
	ImpulseMaxHold   time.Duration    `env:"IMPULSE_MAX_HOLD" envDefault:"5m" doc:"longest that a row is held"`
	Operators        config.Operators `env:"OPERATORS" doc:"senders that may do everything, as telegram:123,slack:U0AB; for the command access"`
}

// Validate returns the mistakes that the types cannot catch.
func (c *Config) Validate() []error {
	errs := []error{config.CheckInterval("POLL_INTERVAL", c.PollInterval)}
	if c.EngagementTTL <= 0 {
		errs = append(errs, errors.New("ENGAGEMENT_TTL: must be above 0"))
	}
	if c.ImpulseThreshold < 0 {
		errs = append(errs, errors.New("IMPULSE_THRESHOLD: must not be negative"))
	}
	if c.ImpulseMaxHold < 0 {
		errs = append(errs, errors.New("IMPULSE_MAX_HOLD: must not be negative"))
	}
	return errs
}

func (c *Config) impulse() msg.Impulse {
	return msg.DefaultImpulse(c.ImpulseThreshold, c.ImpulseMaxHold)
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }

// client returns a client of the running routd.
func (c *Config) client() (*httpx.Client, error) { return daemon.ClientOf(c.Base, "routd", c.URL) }
