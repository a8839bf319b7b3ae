package main

import (
	"os"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// Config is the part of the environment that the launcher itself reads.
type Config struct {
	config.Base
	RoutdAddr config.Addr `env:"ROUTD_ADDR" envDefault:"127.0.0.1:8081" doc:"where routd listens"`
	GatedAddr config.Addr `env:"GATED_ADDR" envDefault:"127.0.0.1:8080" doc:"where gated listens"`
	DashdAddr config.Addr `env:"DASHD_ADDR" envDefault:"127.0.0.1:8083" doc:"where dashd listens"`
	PublicURL config.URL  `env:"DASH_PUBLIC_URL" doc:"where browsers find dashd; default: DASHD_ADDR"`
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }

// furtherAccounts are the accounts that the environment names besides the first one of each platform.
func furtherAccounts() ([]daemon.Account, error) { return daemon.Accounts(os.Environ()) }

// isSet reports whether a secret is set, by value or as a file. Only the daemon that uses it checks
// it: an invalid token must not keep other daemons from starting.
func isSet(secret string) bool { return os.Getenv(secret) != "" || os.Getenv(secret+"_FILE") != "" }
