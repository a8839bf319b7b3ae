package daemon

import (
	"os"

	"arizuko/pkg/config"
)

// environment is what every program reads of the environment.
func environment() (config.Base, error) { return config.Load[config.Base](os.Environ()) }
