package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// Base is the settings of every daemon; it is embedded in each daemon's configuration.
type Base struct {
	Data         string     `env:"ARIZUKO_DATA" envDefault:"./data" doc:"folder of the database, groups, media, logs and sockets"`
	DB           Server     `env:"ARIZUKO_DB" secret:"true" doc:"URL of a database on a Postgres server, postgres://user:password@host/database; default: the file arizuko.db in the data folder"`
	Host         string     `env:"ARIZUKO_HOST" doc:"name of this machine among those that share a database; default: the host's name"`
	SharedSecret string     `env:"ARIZUKO_SECRET" secret:"true" doc:"secret that the daemons share: they sign with it what they send to other machines, and callers by hand send it as bearer; default: the file secret in the data folder, made by migrate"`
	LogLevel     slog.Level `env:"LOG_LEVEL" envDefault:"info" doc:"debug, info, warn or error"`
	LogFormat    LogFormat  `env:"LOG_FORMAT" envDefault:"text" doc:"text or json"`
}

// DBPath is the database's file, if it is one.
func (b Base) DBPath() string { return filepath.Join(b.Data, "arizuko.db") }

// Database is what the store opens: ARIZUKO_DB, or the file.
func (b Base) Database() string { return cmp.Or(string(b.DB), b.DBPath()) }

func (b Base) RunDir() string { return filepath.Join(b.Data, "run") }

// Socket is where a daemon answers HTTP to the other programs of this data folder.
func (b Base) Socket(daemon string) string { return filepath.Join(b.RunDir(), daemon+".http.sock") }

func (b Base) GroupsDir() string  { return filepath.Join(b.Data, "groups") }
func (b Base) MediaDir() string   { return filepath.Join(b.Data, "media") }
func (b Base) LogsDir() string    { return filepath.Join(b.Data, "logs") }
func (b Base) SecretPath() string { return filepath.Join(b.Data, "secret") }

// LinkedFolders returns a line for each of the folders groups and media that is a symbolic link, which no
// backup follows.
func (b Base) LinkedFolders() (lines []string) {
	for _, folder := range []string{b.GroupsDir(), b.MediaDir()} {
		if info, err := os.Lstat(folder); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			lines = append(lines, folder+" is a symbolic link, so `dashd backup` fails")
		}
	}
	return lines
}

// Secret is ARIZUKO_SECRET, or the content of the secret file.
func (b Base) Secret() (string, error) {
	if b.SharedSecret != "" {
		return b.SharedSecret, nil
	}
	if info, err := os.Stat(b.SecretPath()); err == nil && !info.Mode().IsRegular() { // a named pipe is never read to its end
		return "", fmt.Errorf("no secret: %s is not a file; remove it and run `migrate up`, or set ARIZUKO_SECRET", b.SecretPath())
	}
	secret, err := readSecretFile(b.SecretPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("no secret: %s does not exist; run `migrate up`, or set ARIZUKO_SECRET", b.SecretPath())
	case err != nil:
		return "", fmt.Errorf("no secret: %w", err)
	}
	return secret, nil
}

// Logger writes to w in the configured format, with the daemon's name on every line and the
// shared secret and the given secrets redacted.
func (b Base) Logger(w io.Writer, daemon string, secrets ...string) *slog.Logger {
	// Before the first migration there is no secret to redact; other errors are returned
	// to the callers of Secret.
	if shared, err := b.Secret(); err == nil {
		secrets = append([]string{shared}, secrets...)
	}
	out := NewRedactor(append(b.DB.Secrets(), secrets...)...).Writer(w)
	options := &slog.HandlerOptions{Level: b.LogLevel}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if b.LogFormat == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	return slog.New(handler).With("daemon", daemon)
}
