package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/config"
)

type service struct {
	Addr config.Addr `env:"ADDR" envDefault:"127.0.0.1:1" doc:"listen address"`
	URL  config.URL  `env:"URL" doc:"base URL"`
}

type sample struct {
	config.Base
	Poll  time.Duration `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often | it looks"`
	Limit int           `env:"LIMIT" envDefault:"20" doc:"most at once"`
	Token string        `env:"TOKEN,required" secret:"true" doc:"the bot's token"`
	PIN   int           `env:"PIN" secret:"true" doc:"a secret number"`
	Names []string      `env:"NAMES" doc:"comma separated"`
	Routd service       `envPrefix:"ROUTD_"`
	Onbod service       `envPrefix:"ONBOD_"`
	_     string
}

func (s *sample) Validate() error {
	var errs []error
	if s.Poll < 0 {
		errs = append(errs, errors.New("POLL_INTERVAL: must not be negative"))
	}
	if s.Limit < 1 {
		errs = append(errs, errors.New("LIMIT: must be\nat least 1"))
	}
	return errors.Join(errs...)
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadDefaults(t *testing.T) {
	got, err := config.Load[sample]([]string{"TOKEN=t0ken", "POLL_INTERVAL="})
	if err != nil {
		t.Fatal(err)
	}
	want := sample{
		Base: config.Base{Data: "./data", LogFormat: "text"},
		Poll: 2 * time.Second, Limit: 20, Token: "t0ken",
		Routd: service{Addr: "127.0.0.1:1"}, Onbod: service{Addr: "127.0.0.1:1"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
		t.Error(diff)
	}
}

func TestLoadValues(t *testing.T) {
	got, err := config.Load[sample]([]string{
		"TOKEN_FILE=" + file(t, "from file\r\n"), "POLL_INTERVAL=1m30s", "LIMIT=7", "PIN=1234", "NAMES=a,b",
		"ROUTD_ADDR=:0", "ONBOD_URL=http://onbod:82/", "LOG_LEVEL=debug", "UNRELATED=x",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Token != "from file" || got.PIN != 1234 || got.Poll != 90*time.Second || got.Limit != 7 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Names); diff != "" {
		t.Error(diff)
	}
	if got.Routd.Addr != ":0" || got.Onbod.Addr != "127.0.0.1:1" || got.Onbod.URL != "http://onbod:82" {
		t.Errorf("prefixes are mixed up: %+v %+v", got.Routd, got.Onbod)
	}
}

func TestLoad_SeveralMistakes_ReportsAll(t *testing.T) {
	_, err := config.Load[sample]([]string{
		"POLL_INTERVAL=5 minutes", "LIMIT=0", "PIN=hunter2", "LOG_LEVEL=loud", "LOG_FORMAT=xml",
		"ROUTD_ADDR=localhost", "ONBOD_ADDR=:http", "ONBOD_URL=onbod:82",
	})
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %T, want Problems", err)
	}
	want := config.Problems{
		`LOG_LEVEL="loud": slog: level string "loud": unknown name`,
		`LOG_FORMAT="xml": want text or json`,
		`POLL_INTERVAL="5 minutes": time: unknown unit " minutes" in duration "5 minutes"`,
		`TOKEN: required, set it or TOKEN_FILE`,
		`PIN: not a valid int`,
		`ROUTD_ADDR="localhost": want host:port, as in 127.0.0.1:8080`,
		`ONBOD_ADDR=":http": port "http" is not a number from 0 to 65535`,
		`ONBOD_URL="onbod:82": want http://host or https://host`,
		`LIMIT: must be at least 1`,
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("a secret's value is shown")
	}
}

func TestLoadNumbers(t *testing.T) {
	_, err := config.Load[sample]([]string{"TOKEN=x", "LIMIT=99999999999"})
	want := config.Problems{`LIMIT="99999999999": cannot be parsed: value out of range`}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Error(diff)
	}
}

func TestLoadSecretFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tc := range map[string]struct {
		environ []string
		want    string // part of the problem, "" for none
	}{
		"both":         {[]string{"TOKEN=a", "TOKEN_FILE=" + file(t, "b")}, "TOKEN: both TOKEN and TOKEN_FILE are set, only one may be"},
		"missing":      {[]string{"TOKEN_FILE=" + missing}, "TOKEN_FILE: open " + missing},
		"empty":        {[]string{"TOKEN_FILE=" + file(t, "\n")}, "is empty"},
		"folder":       {[]string{"TOKEN_FILE=" + t.TempDir()}, "TOKEN_FILE: read"},
		"too large":    {[]string{"TOKEN_FILE=" + file(t, strings.Repeat("x", 70_000))}, "is larger than 65536 bytes"},
		"empty _FILE":  {[]string{"TOKEN=abc", "TOKEN_FILE="}, ""},
		"empty value":  {[]string{"TOKEN=", "TOKEN_FILE=" + file(t, "abc")}, ""},
		"no newline":   {[]string{"TOKEN_FILE=" + file(t, "abc")}, ""},
		"bad in file":  {[]string{"TOKEN=abc", "PIN_FILE=" + file(t, "hunter2\n")}, "PIN: not a valid int"},
		"not a secret": {[]string{"TOKEN=abc", "LIMIT_FILE=" + missing}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load[sample](tc.environ)
			if tc.want == "" {
				if err != nil || got.Token != "abc" {
					t.Errorf("Token = %q, error %v", got.Token, err)
				}
				return
			}
			var problems config.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(problems[0], tc.want) {
				t.Errorf("got %q, want one problem with %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("a secret's value is shown")
			}
		})
	}
}

type list struct {
	A string `env:"A"`
}

func (list) Validate() []error { return []error{errors.New("A: one"), nil, errors.New("A: two")} }

func TestLoad_ValidateReturnsList_AddsEach(t *testing.T) {
	_, err := config.Load[list](nil)
	if diff := cmp.Diff(error(config.Problems{"A: one", "A: two"}), err); diff != "" {
		t.Error(diff)
	}
}

func TestCheckInterval(t *testing.T) {
	for interval, want := range map[time.Duration]string{
		-time.Second: "POLL: must be at least 10ms", 0: "POLL: must be at least 10ms", 10*time.Millisecond - 1: "POLL: must be at least 10ms",
		10 * time.Millisecond: "", time.Hour: "",
	} {
		got := ""
		if err := config.CheckInterval("POLL", interval); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", interval, got, want)
		}
	}
}

func TestLoad_ProcessEnvironment_IsIgnored(t *testing.T) {
	t.Setenv("TOKEN", "from the process")
	if _, err := config.Load[sample](nil); err == nil {
		t.Error("TOKEN was taken from the process")
	}
}

func TestSecrets(t *testing.T) {
	cfg := sample{Token: "t0ken"}
	cfg.SharedSecret = "shared"
	if diff := cmp.Diff([]string{"shared", "t0ken"}, config.Secrets(cfg)); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	type small struct {
		Poll  time.Duration `env:"POLL" envDefault:"2s" doc:"a | b"`
		Token string        `env:"TOKEN,required" secret:"true" doc:"the token"`
		Sub   service       `envPrefix:"S_"`
		Bare  string        `env:"BARE"`
	}
	want := "| variable | default | meaning |\n|---|---|---|\n" +
		"| `POLL` | `2s` | a \\| b |\n" +
		"| `TOKEN` (or `TOKEN_FILE`) | required | the token |\n" +
		"| `S_ADDR` | `127.0.0.1:1` | listen address |\n" +
		"| `S_URL` |  | base URL |\n" +
		"| `BARE` |  |  |\n"
	if diff := cmp.Diff(want, config.Table(small{Token: "never shown"})); diff != "" {
		t.Error(diff)
	}
}

type waits struct {
	First  time.Duration `env:"FIRST_WAIT" envDefault:"1m"`
	Second time.Duration `env:"SECOND_WAIT" envDefault:"1m"`
}

func (w *waits) Validate() []error {
	return []error{config.CheckInterval("FIRST_WAIT", w.First), config.CheckInterval("SECOND_WAIT", w.Second)}
}

func TestLoad_UnreadableValue_IsOneProblem(t *testing.T) {
	_, err := config.Load[waits]([]string{"FIRST_WAIT=abc", "SECOND_WAIT=0s"})
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) != 2 || !strings.HasPrefix(problems[0], "FIRST_WAIT=") || !strings.HasPrefix(problems[1], "SECOND_WAIT:") {
		t.Errorf("%q", problems)
	}
}
