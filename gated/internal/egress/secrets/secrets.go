// Package secrets keeps what agents use and never see: a file for each secret in the data folder, readable by its owner
// alone. Agents have a token in its place.
package secrets

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"

	"arizuko/pkg/dataowner"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/lockfile"
)

const (
	// Folder is that of the secrets in the data folder.
	Folder = "secrets"
	// commandSuffix is of a file with a command that prints the secret. Names have no dots.
	commandSuffix = ".command"

	maxValue = 64 << 10
	// minValue is the shortest secret, in bytes: a shorter one would be found, and hidden, in ordinary text.
	minValue       = 8
	commandTimeout = 30 * time.Second
	// commandFresh is how long the output of a command is used.
	commandFresh = 5 * time.Minute
	holdTimeout  = time.Minute
)

// TokenPrefix is how tokens begin, TokenLength how long they are, in bytes.
const (
	TokenPrefix = "azk_"
	TokenLength = len(TokenPrefix) + 52
)

// Token stands for a secret in the agents of a group: TokenPrefix, then a-z and 2-7. Only the instance knows the key.
func Token(key []byte, folder, name string) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "egress secret\x00%s\x00%s", folder, name)
	return TokenPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)))
}

// ErrNone is the error for a secret that is not there.
var ErrNone = errors.New("there is no such secret: set it with `gated secret set`")

// Store is the secrets of a data folder. Its methods may be called at the same time, also in several processes.
type Store struct {
	data    string
	running singleflight.Group // commands
	outputs sync.Map           // of commands
}

// output is what a command has printed.
type output struct {
	value string
	at    time.Time
}

// New returns the store of a data folder.
func New(data string) *Store { return &Store{data: data} }

// Get returns the value of a secret. No error has a value in it.
func (s *Store) Get(name string) (value string, err error) {
	err = s.in(name, func(folder *os.Root) error {
		var err error
		if value, err = read(folder, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		command, err := read(folder, name+commandSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return ErrNone
		}
		if err == nil {
			var printed any
			printed, err, _ = s.running.Do(command, func() (any, error) { return s.run(command) })
			value, _ = printed.(string)
		}
		return err
	})
	if err == nil {
		err = check(name, value)
	}
	if err != nil {
		return "", err
	}
	return value, nil
}

// in calls f with the folder, which is made if there is none.
func (s *Store) in(name string, f func(*os.Root) error) error {
	if err := groupconfig.CheckSecretName(name); err != nil {
		return err
	}
	folder, err := dataowner.Make(s.data, Folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := f(folder); err != nil {
		return fmt.Errorf("secret %s: %w", name, err)
	}
	return nil
}

func read(folder *os.Root, name string) (string, error) {
	content, err := dataowner.Read(folder, name, maxValue+1)
	return string(content), err
}

// check returns why a secret cannot have a value.
func check(name, value string) error {
	switch {
	case len(value) < minValue || len(value) > maxValue:
		return fmt.Errorf("secret %s: want a value of %d to %d bytes", name, minValue, maxValue)
	case !json.Valid([]byte(value)) && strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fmt.Errorf("secret %s: its value has several lines, or control characters", name)
	}
	return nil
}

// run returns the output of a command, which is kept for some minutes.
func (s *Store) run(command string) (string, error) {
	if last, ok := s.outputs.Load(command); ok && time.Since(last.(output).at) < commandFresh {
		return last.(output).value, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.Output()
	if err != nil { // what it printed may be secret
		return "", fmt.Errorf("its command failed (%s, at most %s): try it in a shell, as the owner of %s",
			cmd.ProcessState, commandTimeout, s.data)
	}
	value := trimNewline(string(out))
	s.outputs.Store(command, output{value, time.Now()})
	return value, nil
}

func trimNewline(text string) string { return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r") }

// Set sets the value of a secret.
func (s *Store) Set(name, value string) error {
	if err := check(name, value); err != nil {
		return err
	}
	return s.write(name, name, name+commandSuffix, value)
}

// SetCommand makes a command print the value of a secret: /bin/sh -c runs it, as the data folder's owner.
func (s *Store) SetCommand(name, command string) error {
	return s.write(name, name+commandSuffix, name, command)
}

// write replaces a secret's file in one step, and removes its other one.
func (s *Store) write(name, file, other, content string) error {
	return s.in(name, func(folder *os.Root) error {
		if err := dataowner.Write(s.data, folder, file, []byte(content)); err != nil {
			return err
		}
		if err := folder.Remove(other); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Remove removes a secret. It returns ErrNone if there is none.
func (s *Store) Remove(name string) error {
	return s.in(name, func(folder *os.Root) error {
		value, command := folder.Remove(name), folder.Remove(name+commandSuffix)
		if value == nil || errors.Is(value, fs.ErrNotExist) && command == nil {
			return nil
		}
		if errors.Is(value, fs.ErrNotExist) && errors.Is(command, fs.ErrNotExist) {
			return ErrNone
		}
		return errors.Join(value, command)
	})
}

// Names are the names of all secrets, in order.
func (s *Store) Names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.data, Folder))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var names []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), commandSuffix)
		if e.Type().IsRegular() && groupconfig.CheckSecretName(name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// Hold waits until nothing else holds a secret, at most a minute, and returns its value. It is for one that a server
// replaces at each use, as the refresh tokens of subscriptions. It is an error if a command prints the value, since the
// new one has no place. The kernel releases it, too, when the process ends.
func (s *Store) Hold(name string) (value string, release func(), err error) {
	err = s.in(name, func(folder *os.Root) error {
		if _, err := folder.Lstat(name); err != nil {
			return fmt.Errorf("its file is needed, for what it becomes: %w", err)
		}
		lock, err := lockfile.WaitLock(filepath.Join(s.data, Folder, name+".lock"), holdTimeout)
		if err != nil {
			return err
		}
		if value, err = s.Get(name); err != nil {
			return errors.Join(err, lock.Close())
		}
		release = func() { _ = lock.Close() }
		return nil
	})
	return value, release, err
}
