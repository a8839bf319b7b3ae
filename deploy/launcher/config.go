package main

import (
	"os"

	"arizuko/pkg/config"
)

// Config is what the launcher itself takes from the environment.
type Config struct {
	config.Base
	RoutdAddr config.Addr `env:"ROUTD_ADDR" envDefault:"127.0.0.1:8081" doc:"where routd listens"`
	GatedAddr config.Addr `env:"GATED_ADDR" envDefault:"127.0.0.1:8080" doc:"where gated listens"`
	DashdAddr config.Addr `env:"DASHD_ADDR" envDefault:"127.0.0.1:8083" doc:"where dashd listens"`
	PublicURL config.URL  `env:"DASH_PUBLIC_URL" doc:"where browsers find dashd; default: DASHD_ADDR"`
}

func loadConfig() (Config, error) { return config.Load[Config](os.Environ()) }

// isSet reports whether the secret is given, by itself or in a file. Whether it is any good
// is for the daemon that uses it to say: one with a wrong token must not keep the others from
// starting.
func isSet(secret string) bool { return os.Getenv(secret) != "" || os.Getenv(secret+"_FILE") != "" }
