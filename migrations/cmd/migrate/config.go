package main

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"arizuko/migrations"
	"arizuko/pkg/disk"
)

// config is what migrate takes from the environment.
type config struct {
	data      string // ARIZUKO_DATA
	server    string // ARIZUKO_DB, the URL of a Postgres server; "" for a file in data
	hasSecret bool   // ARIZUKO_SECRET or ARIZUKO_SECRET_FILE is set
	unsafeFS  bool   // ARIZUKO_UNSAFE_FS
}

// environment is the configuration of this process.
func environment() (config, error) { return loadConfig(os.Environ()) }

// environOf is the environment of a program beside this one, for the database file in another data folder.
func environOf(data string) []string {
	own := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "ARIZUKO_DATA" || name == "ARIZUKO_DB" || name == "ARIZUKO_DB_FILE"
	})
	return append(own, "ARIZUKO_DATA="+data)
}

// loadConfig reads environ, which has the form of os.Environ. Empty variables count as unset.
func loadConfig(environ []string) (config, error) {
	cfg := config{data: "./data"}
	file := ""
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" {
			continue
		}
		switch name {
		case "ARIZUKO_DATA":
			cfg.data = value
		case "ARIZUKO_DB":
			cfg.server = value
		case "ARIZUKO_DB_FILE":
			file = value
		case "ARIZUKO_SECRET", "ARIZUKO_SECRET_FILE":
			cfg.hasSecret = true
		case disk.UnsafeVariable:
			var err error
			if cfg.unsafeFS, err = strconv.ParseBool(value); err != nil {
				return cfg, refuse("%s: want true or false", name)
			}
		}
	}
	switch {
	case file == "":
	case cfg.server != "":
		return cfg, refuse("ARIZUKO_DB: both ARIZUKO_DB and ARIZUKO_DB_FILE are set, only one may be")
	default:
		content, err := os.ReadFile(file)
		if err != nil {
			return cfg, refuse("ARIZUKO_DB_FILE: %w", err)
		}
		if cfg.server = strings.TrimRight(string(content), "\r\n"); cfg.server == "" {
			return cfg, refuse("ARIZUKO_DB_FILE: %s is empty", file)
		}
	}
	if cfg.server != "" && !isServer(cfg.server) {
		return cfg, refuse("ARIZUKO_DB: want postgres://user:password@host/database; in the password, write %%40 for @, %%2F for / and so on")
	}
	return cfg, nil
}

// isServer reports whether a text is the URL of a database on a Postgres server.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") && strings.Trim(u.Path, "/") != ""
}

// checkFileSystem refuses a file system that cannot carry the database.
func (c config) checkFileSystem() error {
	if c.server != "" || c.unsafeFS {
		return nil
	}
	if err := disk.CheckCarry(c.dbPath()); err != nil {
		return refusal{err}
	}
	return nil
}

// files are the migrations for the database.
func (c config) files() fs.FS {
	if c.server != "" {
		return migrations.PostgresFS()
	}
	return migrations.FS
}

// missing reports whether there is no database file.
func (c config) missing() bool {
	_, err := os.Stat(c.dbPath())
	return c.server == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR))
}

// checkThere refuses a folder without a database of ours.
func (c config) checkThere() error {
	if c.missing() {
		return refuse("there is no database at %s: set ARIZUKO_DATA to the folder of the instance, or make one by `migrate up`", c.dbPath())
	}
	return c.checkFile()
}

func (c config) dbPath() string     { return filepath.Join(c.data, "arizuko.db") }
func (c config) secretPath() string { return filepath.Join(c.data, "secret") }
func (c config) lockPath() string   { return filepath.Join(c.data, "run", "migrate.lock") }

// restoringPath is the folder that `dashd restore` works in; it is removed once the restore is complete.
func (c config) restoringPath() string { return filepath.Join(c.data, "restoring") }

// copyPath is the copy of the database that is kept before a migration of a schema; "*" is any.
func (c config) copyPath(schema string) string { return c.dbPath() + ".schema-" + schema }
