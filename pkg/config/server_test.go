package config_test

import (
	"bytes"
	"strings"
	"testing"

	"arizuko/pkg/config"
)

func TestServer_URLs(t *testing.T) {
	t.Parallel()
	for _, valid := range []string{
		"postgres://arizuko:pass@db.example/arizuko", "postgresql://arizuko@/arizuko?host=/run/postgresql",
		"postgres://a:b@one:5432,two:5432/arizuko?target_session_attrs=read-write",
	} {
		base, err := config.Load[config.Base]([]string{"ARIZUKO_DB=" + valid})
		if err != nil || base.Database() != valid {
			t.Errorf("%s: %q, %v", valid, base.Database(), err)
		}
	}
	for _, wrong := range []string{
		"/var/lib/arizuko/arizuko.db", "mysql://a:hidden-word@host/arizuko", "postgres://a:hidden-word@host", "postgres://a:hidden-word@host/", "postgres://a:hidden%word@host/x",
		"host=db password=hidden-word", "postgres://a:hidden-word@[::1/x",
	} {
		_, err := config.Load[config.Base]([]string{"ARIZUKO_DB=" + wrong})
		if err == nil || !strings.Contains(err.Error(), "ARIZUKO_DB: ") || !strings.Contains(err.Error(), "postgres://user:password@host/database") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestBase_WithoutServer_DatabaseIsTheFile(t *testing.T) {
	t.Parallel()
	base, err := config.Load[config.Base]([]string{"ARIZUKO_DATA=/d"})
	if err != nil || base.Database() != "/d/arizuko.db" || base.DB != "" {
		t.Errorf("%q, %v", base.Database(), err)
	}
}

func TestLogger_PasswordOfServer_IsRedacted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	base := config.Base{Data: t.TempDir(), DB: "postgres://a:pass%2Fword@host/x"}
	base.Logger(&out, "gated").Error("open postgres://a:pass%2Fword@host/x", "err", "password pass/word is wrong", "text", "password pass%2Fword")
	base.DB = "postgres://host/x?user=a&password=pass-word"
	base.Logger(&out, "gated").Error("password pass-word is wrong")
	if text := out.String(); strings.Contains(text, "word@") || strings.Contains(text, "pass/") || strings.Contains(text, "pass%") || strings.Contains(text, "pass-") {
		t.Error(text)
	}
	if got := config.Secrets(struct{ config.Base }{base}); len(got) != 2 || got[1] != "pass-word" {
		t.Errorf("the secrets are %q", got)
	}
}
