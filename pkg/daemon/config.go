package daemon

import (
	"os"

	"arizuko/pkg/config"
)

// environment is what every program reads of the environment.
func environment() (config.Base, error) { return config.Load[config.Base](os.Environ()) }

// dataFolder returns the data folder, without a look at other settings: a process of root reads files that they name only as
// the user who it becomes.
func dataFolder() string {
	cfg, _ := config.Load[struct {
		Data string `env:"ARIZUKO_DATA" envDefault:"./data"`
	}](os.Environ()) // a text cannot be invalid
	return cfg.Data
}
