package hooks

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/dataowner"
	"arizuko/pkg/groupconfig"
)

const (
	// folder is that of the secrets in the data folder: a file for each hook, named by its id. Each line is a secret,
	// the newest first; those before it have a tab and the unix ms until when they count.
	folder    = "hooks"
	maxFile   = 64 << 10
	minSecret = 8
	maxSecret = 1024
)

// NewSecret makes a secret that senders of a kind take.
func NewSecret(kind groupconfig.HookKind) string {
	if kind == groupconfig.HookStandard {
		var key [32]byte
		_, _ = rand.Read(key[:]) // never fails
		return standardPrefix + base64.StdEncoding.EncodeToString(key[:])
	}
	return rand.Text() + rand.Text()
}

// CheckSecret returns why a text cannot be a hook's secret.
func CheckSecret(secret string) error {
	if len(secret) < minSecret || len(secret) > maxSecret || strings.ContainsFunc(secret, notInSecret) {
		return fmt.Errorf("want a secret of %d to %d printable ASCII characters", minSecret, maxSecret)
	}
	return nil
}

// SecretFile is where the secrets of a hook are.
func SecretFile(data, id string) string { return filepath.Join(data, folder, id) }

func notInSecret(c rune) bool { return c < ' ' || c > '~' }

// Secrets are the secrets of a hook that count now, the newest first. The error is fs.ErrNotExist if it has none.
func Secrets(data, id string, now time.Time) (secrets []string, err error) {
	lines, err := read(data, id)
	for _, line := range lines {
		if secret, until := cut(line); now.UnixMilli() < until {
			secrets = append(secrets, secret)
		}
	}
	if err == nil && len(secrets) == 0 {
		err = fs.ErrNotExist
	}
	return secrets, err
}

// cut reads a line of a file: a secret, and until when it counts, in unix ms.
func cut(line string) (secret string, until int64) {
	secret, end, old := strings.Cut(line, "\t")
	if !old {
		return secret, math.MaxInt64
	}
	until, _ = strconv.ParseInt(end, 10, 64) // a broken one has ended
	return secret, until
}

// SetSecret gives a hook a new secret. Those that it had count until overlap has passed.
func SetSecret(data, id, secret string, overlap time.Duration, now time.Time) error {
	if err := CheckSecret(secret); err != nil {
		return err
	}
	former, err := read(data, id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	content, ends := secret+"\n", now.Add(overlap).UnixMilli()
	for _, line := range former {
		if old, until := cut(line); until > now.UnixMilli() && old != secret && overlap > 0 {
			content += fmt.Sprintf("%s\t%d\n", old, min(until, ends))
		}
	}
	in, err := dataowner.Make(data, folder)
	if err != nil {
		return err
	}
	defer in.Close()
	return dataowner.Write(data, in, id, []byte(content))
}

// RemoveSecrets removes the secrets of a hook that is no more.
func RemoveSecrets(data, id string) error {
	in, err := dataowner.Make(data, folder)
	if err != nil {
		return err
	}
	defer in.Close()
	if err = in.Remove(id); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read returns the lines of a hook's file.
func read(data, id string) ([]string, error) {
	in, err := dataowner.Make(data, folder)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	content, err := dataowner.Read(in, id, maxFile)
	return slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return line == "" }), err
}
