package main

import (
	"os"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
)

// Config is dashd's environment.
type Config struct {
	config.Base
	Addr          config.Addr     `env:"DASHD_ADDR" envDefault:"127.0.0.1:8083" doc:"where it listens"`
	URL           config.URL      `env:"DASHD_URL" doc:"where the status and login commands find it; default: DASHD_ADDR"`
	PublicURL     config.URL      `env:"DASH_PUBLIC_URL" doc:"where browsers find it, for links and cookies; requests to its host are answered; default: DASHD_ADDR"`
	PrintLink     bool            `env:"DASH_PRINT_LINK" envDefault:"true" doc:"whether the address to log in at is printed at start; the launcher sets it to false and prints it itself"`
	Proxies       config.Networks `env:"TRUSTED_PROXIES" doc:"addresses and networks of proxies, as in 127.0.0.1,10.0.0.0/8: only their X-Forwarded-For and X-Forwarded-Proto count"`
	RoutdAddr     config.Addr     `env:"ROUTD_ADDR" envDefault:"127.0.0.1:8081" doc:"where routd listens, for ROUTD_URL"`
	RoutdURL      config.URL      `env:"ROUTD_URL" doc:"where routd is called; default: ROUTD_ADDR"`
	OnbodAddr     config.Addr     `env:"ONBOD_ADDR" envDefault:"127.0.0.1:8082" doc:"where onbod listens, for ONBOD_URL"`
	OnbodURL      config.URL      `env:"ONBOD_URL" doc:"where onbod is called; default: ONBOD_ADDR"`
	Operators     []string        `env:"OPERATORS" doc:"senders that may approve chats, as telegram:123,slack:U0AB: the same as gated's, shown in the first steps"`
	Password      string          `env:"DASH_PASSWORD" secret:"true" doc:"logs in to the dashboard; without one there are one-time links, the first printed at start"`
	AssistantName string          `env:"ASSISTANT_NAME" envDefault:"arizuko" doc:"name of agents before their first message; the same as gated's"`
	PollInterval  time.Duration   `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often the database is polled without a poke"`
}

// Validate returns what the types cannot check.
func (c *Config) Validate() error { return config.CheckInterval("POLL_INTERVAL", c.PollInterval) }

func loadConfig() (Config, error) { return config.Load[Config](environ()) }

func environ() []string { return os.Environ() }

// dataDir is ARIZUKO_DATA: backup and restore need nothing else of the environment.
func dataDir() (string, error) {
	cfg, err := config.Load[config.Base](os.Environ())
	return cfg.Data, err
}

// client returns a client of the running dashd.
func (c *Config) client() (*httpx.Client, error) {
	secret, err := c.Secret()
	if err != nil {
		return nil, err
	}
	return httpx.NewClient(string(c.URL.Or(c.Addr)), secret), nil
}
