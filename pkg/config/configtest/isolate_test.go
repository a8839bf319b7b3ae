package configtest

import (
	"os"
	"testing"

	"arizuko/pkg/config"
)

func TestIsolate_VariablesOfTheUser_AreGone(t *testing.T) {
	for _, name := range []string{"TEST_TOKEN", "TEST_TOKEN_FILE", "TEST_ADDR", "TEST_OTHER"} {
		t.Setenv(name, "the user's")
	}
	Isolate(struct {
		Token string      `env:"TEST_TOKEN" secret:"true"`
		Addr  config.Addr `env:"TEST_ADDR"`
	}{})
	for name, want := range map[string]string{"TEST_TOKEN": "", "TEST_TOKEN_FILE": "", "TEST_ADDR": nowhere, "TEST_OTHER": "the user's"} {
		if got := os.Getenv(name); got != want {
			t.Errorf("%s=%s, want %q", name, got, want)
		}
	}
}
