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
	"strings"
	"unicode/utf8"
)

// Base is the settings of every daemon; it is embedded in each daemon's configuration.
type Base struct {
	Data         string     `env:"ARIZUKO_DATA" envDefault:"./data" doc:"folder of the database, groups, media, logs and sockets"`
	DB           Server     `env:"ARIZUKO_DB" secret:"true" doc:"URL of a database on a Postgres server, postgres://user:password@host/database; default: the file arizuko.db in the data folder"`
	Host         string     `env:"ARIZUKO_HOST" doc:"name of this machine among those that share a database; default: the host's name"`
	UnsafeFS     bool       `env:"ARIZUKO_UNSAFE_FS" envDefault:"false" doc:"whether the database may be on a file system that cannot carry it (9p, FUSE, virtiofs, NFS, CIFS, SMB): messages may be lost, and the file damaged"`
	SharedSecret string     `env:"ARIZUKO_SECRET" secret:"true" doc:"secret of at least 16 characters that the daemons share: they sign with it what they send to other machines, and callers by hand send it as bearer; default: the file secret in the data folder, made by migrate"`
	LogLevel     slog.Level `env:"LOG_LEVEL" envDefault:"info" doc:"debug, info, warn or error"`
	LogFormat    LogFormat  `env:"LOG_FORMAT" envDefault:"text" doc:"text or json"`
}

// DBPath is the database's file, if it is one.
func (b Base) DBPath() string { return filepath.Join(b.Data, "arizuko.db") }

// Database is the store's database: ARIZUKO_DB, or the file.
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
	// a named pipe is never read to its end
	if info, err := os.Stat(b.SecretPath()); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("no secret: %s is not a file; remove it and run `migrate up`, or set ARIZUKO_SECRET",
			b.SecretPath())
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

// minSharedSecret is the length of a shared secret, in characters. 16 hexadecimal ones have 64 bits: more than can be
// tried over the network. The one that migrate makes has 64 characters.
const minSharedSecret = 16

// StrongSecret is Secret, unless that can be guessed, or read by other users: its file must be no link, and only its
// owner's. A file that ARIZUKO_SECRET_FILE names may have any mode: engines of containers mount secrets as they like.
func (b Base) StrongSecret() (string, error) {
	secret, err := b.Secret()
	if err != nil {
		return "", err
	}
	var problems []error
	if b.SharedSecret == "" {
		problems = append(problems, checkSecretFile(b.SecretPath()))
	}
	if n := utf8.RuneCountInString(strings.Join(strings.Fields(secret), "")); n < minSharedSecret {
		problems = append(problems,
			fmt.Errorf("the secret between the daemons can be guessed: it has %d characters, at least %d are needed; "+
				"stop all daemons, and write one that `openssl rand -hex 32` prints into %s, or ARIZUKO_SECRET", n,
				minSharedSecret, b.SecretPath()))
	}
	return secret, errors.Join(problems...)
}

func checkSecretFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link: remove it, and name the file that it leads to in ARIZUKO_SECRET_FILE",
			path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, so other users of this machine can call the daemons: run `chmod 600 %s`, "+
			"or name the file in ARIZUKO_SECRET_FILE",
			path, info.Mode().Perm(), path)
	}
	return nil
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
