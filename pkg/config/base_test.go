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
)

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
