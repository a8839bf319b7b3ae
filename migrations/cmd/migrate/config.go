package main

import (
	"os"
	"path/filepath"
	"strings"
)

// config is what migrate takes from the environment.
type config struct {
	data      string // ARIZUKO_DATA
	hasSecret bool   // ARIZUKO_SECRET or ARIZUKO_SECRET_FILE is set
}

// environment is the configuration of this process.
func environment() config { return loadConfig(os.Environ()) }

// loadConfig reads environ, which has the form of os.Environ. Empty variables count as unset.
func loadConfig(environ []string) config {
	cfg := config{data: "./data"}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" {
			continue
		}
		switch name {
		case "ARIZUKO_DATA":
			cfg.data = value
		case "ARIZUKO_SECRET", "ARIZUKO_SECRET_FILE":
			cfg.hasSecret = true
		}
	}
	return cfg
}

func (c config) dbPath() string     { return filepath.Join(c.data, "arizuko.db") }
func (c config) secretPath() string { return filepath.Join(c.data, "secret") }
func (c config) lockPath() string   { return filepath.Join(c.data, "run", "migrate.lock") }

// restoringPath is the folder that `dashd restore` works in; it is removed once the restore is complete.
func (c config) restoringPath() string { return filepath.Join(c.data, "restoring") }

// copyPath is the copy of the database that is kept before a migration of a schema; "*" is any.
func (c config) copyPath(schema string) string { return c.dbPath() + ".schema-" + schema }
