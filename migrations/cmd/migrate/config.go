package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"arizuko/migrations"
	envconfig "arizuko/pkg/config"
	"arizuko/pkg/disk"
)

// config has the settings of the environment.
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

// loadConfig reads environ, which has the form of os.Environ. A file of the secret is not read.
func loadConfig(environ []string) (config, error) {
	env, err := envconfig.Load[struct {
		Data       string           `env:"ARIZUKO_DATA" envDefault:"./data"`
		DB         envconfig.Server `env:"ARIZUKO_DB" secret:"true"`
		Secret     string           `env:"ARIZUKO_SECRET"`
		SecretFile string           `env:"ARIZUKO_SECRET_FILE"`
		UnsafeFS   bool             `env:"ARIZUKO_UNSAFE_FS"`
	}](environ)
	if err != nil {
		return config{}, refusal{err}
	}
	return config{data: env.Data, server: string(env.DB), hasSecret: env.Secret+env.SecretFile != "",
		unsafeFS: env.UnsafeFS}, nil
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
		return refuse("there is no database at %s: set ARIZUKO_DATA to the folder of the instance, or make one by "+
			"`migrate up`", c.dbPath())
	}
	return c.checkFile()
}

func (c config) dbPath() string     { return filepath.Join(c.data, "arizuko.db") }
func (c config) secretPath() string { return filepath.Join(c.data, "secret") }
func (c config) lockPath() string   { return filepath.Join(c.data, "run", "migrate.lock") }

// checkRestoring refuses a data folder that `dashd restore` works in: it has a folder for that until the restore is
// complete.
func (c config) checkRestoring() error {
	path := filepath.Join(c.data, "restoring")
	if _, err := os.Stat(path); err == nil {
		return refuse("%s is here: a restore is under way or was interrupted; run `dashd restore` again, "+
			"or see %[1]s/README", path)
	}
	return nil
}

// copyPath is the copy of the database that is kept before a migration of a schema; "*" is any.
func (c config) copyPath(schema string) string { return c.dbPath() + ".schema-" + schema }
