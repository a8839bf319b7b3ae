package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../../docs/reference/environment.md", "base", config.Base{})
}

func TestBasePaths(t *testing.T) {
	b := config.Base{Data: "/d"}
	for got, want := range map[string]string{
		b.DBPath(): "/d/arizuko.db", b.RunDir(): "/d/run", b.GroupsDir(): "/d/groups",
		b.MediaDir(): "/d/media", b.LogsDir(): "/d/logs", b.SecretPath(): "/d/secret",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestBaseSecret(t *testing.T) {
	b := config.Base{Data: t.TempDir()}
	if _, err := b.Secret(); err == nil || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(b.Data, "secret"), []byte("fromfile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Secret(); got != "fromfile" || err != nil {
		t.Errorf("Secret = %q, %v", got, err)
	}
	b.SharedSecret = "fromenv"
	if got, err := b.Secret(); got != "fromenv" || err != nil {
		t.Errorf("Secret = %q, %v", got, err)
	}
}

func TestStrongSecret_GuessedOrReadable_Refused(t *testing.T) {
	const good = "0123456789abcdef"
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // "" if it is used
	}{
		"good":         {good + "\n", 0o600, ""},
		"read-only":    {good, 0o400, ""},
		"short":        {good[1:], 0o600, "has 15 characters, at least 16 are needed"},
		"one blank":    {" ", 0o600, "has 0 characters"},
		"blanks":       {strings.Repeat(" \t", 20), 0o600, "has 0 characters"},
		"of the group": {good, 0o640, "run `chmod 600 DATA/secret`"},
		"of others":    {good, 0o604, "run `chmod 600 DATA/secret`"},
		"written":      {good, 0o622, "mode 0622"},
		"both":         {"x", 0o644, "chmod 600 DATA/secret`, or name the file in ARIZUKO_SECRET_FILE\nthe secret between the daemons can be guessed"},
	} {
		b := config.Base{Data: t.TempDir()}
		if err := errors.Join(os.WriteFile(b.SecretPath(), []byte(tc.content), tc.mode), os.Chmod(b.SecretPath(), tc.mode)); err != nil {
			t.Fatal(err)
		}
		wantSecret(t, name, b, tc.want)
	}
	given := config.Base{Data: t.TempDir(), SharedSecret: good}
	wantSecret(t, "given", given, "")
	given.SharedSecret = good[1:]
	wantSecret(t, "short and given", given, "has 15 characters")

	linked, file := config.Base{Data: t.TempDir()}, filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(file, []byte(good), 0o600), os.Symlink(file, linked.SecretPath())); err != nil {
		t.Fatal(err)
	}
	wantSecret(t, "a link", linked, "DATA/secret is a symbolic link")
	linked.SharedSecret = good
	wantSecret(t, "a link that is not used", linked, "")
}

// wantSecret fails the test unless the secret is used, or refused with that text.
func wantSecret(t *testing.T, name string, b config.Base, want string) {
	t.Helper()
	_, err := b.StrongSecret()
	if text := strings.ReplaceAll(fmt.Sprint(err), b.Data, "DATA"); (err == nil) != (want == "") || !strings.Contains(text, want) {
		t.Errorf("%s: %s, want %q", name, text, want)
	}
}

type nested struct{ Inner *struct{ Key string } }

func TestLoggerRedacts(t *testing.T) {
	const shared, token, odd = "0123456789abcdef", "1234:AAE-token", `o"dd<\` + "\n" + `secret`
	for _, format := range []config.LogFormat{"text", "json"} {
		t.Run(string(format), func(t *testing.T) {
			var out bytes.Buffer
			b := config.Base{Data: t.TempDir(), SharedSecret: shared, LogFormat: format}
			log := b.Logger(&out, "teled", token, odd, "ab")
			deep := nested{Inner: &struct{ Key string }{token}}
			log.With("with", token).WithGroup("g").With("in", shared).Error("calling /bot"+token+"/getMe",
				"err", fmt.Errorf("get: %w", errors.New("https://api/bot"+token)),
				slog.Group("deep", "a", slog.AnyValue([]string{token})),
				"odd", odd, "struct", deep, "quoted", fmt.Sprintf("%q", token), token, "as key", "keep", "ab")
			text := out.String()
			for _, secret := range []string{shared, token, "secret"} {
				if strings.Contains(text, secret) {
					t.Errorf("%q is in the log: %s", secret, text)
				}
			}
			if !strings.Contains(text, "/bot[redacted]/getMe") || !strings.Contains(text, "teled") || !strings.Contains(text, "ab") {
				t.Errorf("more than the secrets was redacted: %s", text)
			}
			if format == "json" && !json.Valid(out.Bytes()) {
				t.Errorf("not JSON: %s", text)
			}
		})
	}
}

func TestLoggerLevel(t *testing.T) {
	var out bytes.Buffer
	b := config.Base{Data: t.TempDir(), LogLevel: slog.LevelWarn}
	log := b.Logger(&out, "gated")
	log.Info("quiet")
	log.Warn("loud")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "loud") {
		t.Errorf("got %s", got)
	}
}

func TestRedactor_OverlappingSecrets_LongestFirst(t *testing.T) {
	r := config.NewRedactor("secret", "secret-and-more")
	if got, want := r.String("a secret-and-more b secret c"), "a [redacted] b [redacted] c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r = config.NewRedactor("123:a/b+c \"d")
	for _, form := range []string{
		`123:a/b+c "d`, `123:a/b+c \"d`, "123%3Aa%2Fb%2Bc+%22d", "123%3aa%2fb%2bc+%22d", "123:a%2Fb+c%20%22d", "123:a%2fb+c%20%22d",
	} {
		if got := r.String("x" + form + "y"); got != "x[redacted]y" {
			t.Errorf("%s became %q", form, got)
		}
	}
	if got := (config.Redactor{}).String("secret"); got != "secret" {
		t.Errorf("the zero value changed it to %q", got)
	}
}

// Programs cut titles, with or without a mark.
func TestRedactor_BeginningOfASecret_IsHidden(t *testing.T) {
	r := config.NewRedactor("sk-test-Z9y8X7w6V5u4", "postgres://ann:hunter2hunter2@db", "[redacted]12345", `quo"te"quo"te"quote`)
	for text, want := range map[string]string{
		"run sk-test-Z9y8X7w6": "run [redacted]", "sk-test-Z9y8… sk-test-Z9y8X7w6V5u4sk-test-Z9y8X": "[redacted]… [redacted][redacted]", "sk-test-Z9y sk-test-": "sk-test-Z9y sk-test-",
		"postgres://bob@db": "postgres://bob@db", "postgres://ann:hunter2h": "[redacted]", "[redacted]1": "[redacted]1", `"quo\"te\"quo\"te`: `"[redacted]`,
	} {
		if got := r.String(text); got != want {
			t.Errorf("%s became %s, not %s", text, got, want)
		}
	}
}

func TestRedactor_GrowingText_ShowsNoBeginningOfASecret(t *testing.T) {
	const text = "the key is sk-secret-1, once more: sk-secret-1-and-more, or abcdefxyz."
	r := config.NewRedactor("sk-secret-1", "sk-secret-1-and-more", "abcdef", "defxyz")
	whole, shown := r.String(text), ""
	for end := range len(text) + 1 {
		shown = r.Growing(text[:end])
		if !strings.HasPrefix(whole, shown) {
			t.Errorf("of %q is shown: %q", text[:end], shown)
		}
	}
	if shown != whole {
		t.Errorf("of all is shown: %q", shown)
	}
	if got := (config.Redactor{}).Growing(text); got != text {
		t.Errorf("without secrets: %q", got)
	}
}
