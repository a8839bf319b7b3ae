package hooks

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/groupconfig"
)

const (
	// folder is that of the secrets in the data folder: a file for each hook, named by its id, with a list of secrets,
	// the newest first.
	folder    = "hooks"
	maxFile   = 64 << 10
	minSecret = 8
	maxSecret = 1024
)

// secret is one of a hook. A former one counts until a time, in unix ms; that of the newest is 0.
type secret struct {
	Secret string `json:"secret"`
	Until  int64  `json:"until,omitempty"`
}

// NewSecret makes a secret that senders of a kind take.
func NewSecret(kind groupconfig.HookKind) string {
	text := rand.Text() + rand.Text() // 52 characters, which are base64, too
	if kind == groupconfig.HookStandard {
		text = standardPrefix + text
	}
	return text
}

// Secrets are the secrets of a hook that count now, the newest first. The error is fs.ErrNotExist if it has none.
func Secrets(data, id string, now time.Time) (texts []string, err error) {
	all, err := read(data, id, now)
	for _, s := range all {
		texts = append(texts, s.Secret)
	}
	return texts, err
}

// SetSecret gives a hook a new secret. Those that it had count until overlap has passed. The error is a bad_request for
// a text that cannot be a secret.
func SetSecret(data, id, text string, overlap time.Duration, now time.Time) error {
	if len(text) < minSecret || len(text) > maxSecret ||
		strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		return apierr.New(apierr.BadRequest, "want a secret of %d to %d printable ASCII characters", minSecret,
			maxSecret)
	}
	former, err := read(data, id, now)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all, ends := []secret{{Secret: text}}, now.Add(overlap).UnixMilli()
	for _, s := range former {
		if s.Until == 0 || s.Until > ends {
			s.Until = ends
		}
		if s.Secret != text {
			all = append(all, s)
		}
	}
	content, err := json.Marshal(all)
	if err != nil {
		return err
	}
	in, err := dataowner.Make(data, folder)
	if err != nil {
		return err
	}
	defer in.Close()
	return dataowner.Write(data, in, id, content)
}

// RemoveSecrets removes the secrets of a hook that is no more.
func RemoveSecrets(data, id string) error {
	in, err := dataowner.Open(data, folder)
	if err == nil {
		defer in.Close()
		err = in.Remove(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read returns the secrets that count now.
func read(data, id string, now time.Time) (all []secret, err error) {
	in, err := dataowner.Open(data, folder)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	content, err := dataowner.Read(in, id, maxFile)
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	all = slices.DeleteFunc(all, func(s secret) bool { return s.Until != 0 && s.Until <= now.UnixMilli() })
	if err == nil && len(all) == 0 {
		err = fs.ErrNotExist
	}
	return all, err
}
