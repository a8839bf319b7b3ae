package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/config"
)

func TestShow_Secrets_AreNotInIt(t *testing.T) {
	type settings struct {
		Addr  config.Addr `env:"X_ADDR" envDefault:"127.0.0.1:1" doc:"where"`
		Names []string    `env:"X_NAMES"`
		Token string      `env:"X_TOKEN" secret:"true"`
		Other string      `env:"X_OTHER" secret:"true"`
	}
	environ := []string{"X_NAMES=a,b", "X_TOKEN=hunter2"}
	cfg, err := config.Load[settings](environ)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Shown{
		{Name: "X_ADDR", Doc: "where", Value: "127.0.0.1:1", Default: true}, {Name: "X_NAMES", Value: "a,b"},
		{Name: "X_TOKEN", Value: "set"}, {Name: "X_OTHER", Value: "not set", Default: true},
	}
	if diff := cmp.Diff(want, config.Show(cfg)); diff != "" {
		t.Error(diff)
	}
}
