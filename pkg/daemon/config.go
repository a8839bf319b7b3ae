package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"arizuko/migrations"
	"arizuko/pkg/config"
	"arizuko/pkg/store"
)

// environment is the part of the environment that every program reads.
func environment() (config.Base, error) { return config.Load[config.Base](os.Environ()) }

// dataFolder returns the data folder, without a look at other settings: a process of root reads files that they name
// only as the user who it becomes.
func dataFolder() string {
	cfg, _ := config.Load[struct {
		Data string `env:"ARIZUKO_DATA" envDefault:"./data"`
	}](os.Environ()) // a text cannot be invalid
	return cfg.Data
}

// ZoneProblem says that TZ names no time zone, for which the programs take UTC; "" if it does.
func ZoneProblem(environ []string) string {
	zone := strings.TrimPrefix(variable(environ, "TZ"), ":") // "" is UTC
	_, err := time.LoadLocation(zone)
	if _, missing := os.Stat(zone); err != nil && (!filepath.IsAbs(zone) || missing != nil) {
		return fmt.Sprintf("TZ=%s is no time zone: reminders and times of a day are in UTC; "+
			"set one such as Europe/Berlin", zone)
	}
	return ""
}

// checkZone returns ZoneProblem as an error.
func checkZone() error {
	if problem := ZoneProblem(os.Environ()); problem != "" {
		return &ExitError{ExitRefused, errors.New(problem)}
	}
	return nil
}

// checkSecret returns what is wrong with the secret between the daemons, nil if there is none.
func checkSecret() error {
	base, err := config.Load[config.Base](os.Environ())
	if err != nil {
		return nil //nolint:nilerr // the program's own check reports it
	}
	if _, err := base.Secret(); err != nil {
		return nil //nolint:nilerr // so is this
	}
	if _, err := base.StrongSecret(); err != nil {
		return &ExitError{ExitRefused, err}
	}
	return nil
}

// SchemaProblem returns why this program cannot use the database that the environment names, nil if it can, or if there
// is none that can be read.
func SchemaProblem(ctx context.Context) error { return schema(ctx).Mismatch(migrations.Latest()) }

func schema(ctx context.Context) store.Schema {
	base, err := environment()
	if err != nil {
		return store.Schema{} // the program's own check reports it
	}
	s, err := store.ReadSchema(ctx, base.Database())
	if err != nil {
		return store.Schema{} // no database yet, or opening it reports the error
	}
	return s
}

// notifySocket is systemd's socket for sd_notify(3), "" if it has not started the process.
func notifySocket() string { return os.Getenv("NOTIFY_SOCKET") }
