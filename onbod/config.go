package main

import (
	"errors"
	"os"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// minTTL is how long a request lives at least: operators sleep.
const minTTL = 24 * time.Hour

// Config is onbod's environment.
type Config struct {
	config.Base
	Addr         config.Addr      `env:"ONBOD_ADDR" envDefault:"127.0.0.1:8082" doc:"where it listens"`
	URL          config.URL       `env:"ONBOD_URL" doc:"where the commands find it; default: its socket in the data folder"`
	RoutdURL     config.URL       `env:"ROUTD_URL" doc:"where routd is called; default: its socket in the data folder"`
	Operators    config.Operators `env:"OPERATORS" doc:"senders that decide on requests and are notified of them, as telegram:123,slack:U0AB; the same as gated's"`
	TTL          time.Duration    `env:"REQUEST_TTL" envDefault:"168h" doc:"how long a request waits for an operator, at least 24h"`
	MaxPerSender int              `env:"REQUESTS_PER_SENDER" envDefault:"5" doc:"requests that one sender may cause within an hour"`
	MaxPerHour   int              `env:"REQUESTS_PER_HOUR" envDefault:"60" doc:"requests of all senders within an hour"`
	MaxPending   int              `env:"REQUESTS_PENDING" envDefault:"500" doc:"requests that wait at once"`
}

// Validate returns the mistakes that the types cannot catch.
func (c *Config) Validate() []error {
	var errs []error
	if c.TTL < minTTL {
		errs = append(errs, errors.New("REQUEST_TTL: must be at least 24h"))
	}
	for name, n := range map[string]int{"REQUESTS_PER_SENDER": c.MaxPerSender, "REQUESTS_PER_HOUR": c.MaxPerHour,
		"REQUESTS_PENDING": c.MaxPending} {
		if n < 1 || n > 10_000 {
			errs = append(errs, errors.New(name+": must be from 1 to 10000"))
		}
	}
	return errs
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }

// client returns a client of the running onbod.
func (c *Config) client() (*httpx.Client, error) { return daemon.ClientOf(c.Base, "onbod", c.URL) }
