package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	configtest.Isolate(Config{})
	goleak.VerifyTestMain(m)
}

const secret = "0123456789abcdef"

// dataFolder is a migrated data folder with a short path, because socket paths are limited.
func dataFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "onbod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Migrate(filepath.Join(dir, "arizuko.db")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestServe_AnswersWithTheSecretAlone(t *testing.T) {
	data := dataFolder(t)
	cfg, err := config.Load[Config]([]string{"ARIZUKO_DATA=" + data, "ONBOD_ADDR=127.0.0.1:0", "ROUTD_ADDR=127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d, err := start(ctx, cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.run(ctx) }()
	client := httpx.NewClient("onbod", "http://"+d.Addr, secret)
	defer client.HTTP.CloseIdleConnections()
	ask := map[string]string{"chat_jid": "telegram:7", "sender": "telegram:7"}
	var asked struct{ Code, State string }
	for deadline := time.Now().Add(30 * time.Second); asked.Code == ""; {
		if err := client.Do(ctx, http.MethodPost, "/v1/requests", ask, &asked); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if asked.State != "pending" {
		t.Errorf("%+v", asked)
	}
	var raw httpx.Raw
	if err := client.Do(ctx, http.MethodGet, "/metrics", nil, &raw); err != nil {
		t.Error(err)
	}
	for _, line := range []string{`arizuko_onboarding_requests_total{result="created"} 1`, "arizuko_onboarding_pending 1", "arizuko_onboarding_oldest_seconds "} {
		if !strings.Contains(string(raw), line) {
			t.Errorf("metrics: no %s in\n%s", line, raw)
		}
	}
	guess := httpx.NewClient("onbod", "http://"+d.Addr, "guess")
	defer guess.HTTP.CloseIdleConnections()
	if status, _, err := guess.AcceptUnsigned().Get(ctx, "/v1/requests"); status != http.StatusUnauthorized {
		t.Errorf("a wrong secret: %d, %v", status, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCheck_WithoutOperators_Warns(t *testing.T) {
	t.Setenv("ARIZUKO_DATA", dataFolder(t))
	var out bytes.Buffer
	if err := check(t.Context(), &out); err != nil || !strings.Contains(out.String(), "OPERATORS is not set") {
		t.Errorf("%v, %s", err, &out)
	}
	t.Setenv("OPERATORS", "telegram:42")
	out.Reset()
	if err := check(t.Context(), &out); err != nil || out.Len() > 0 {
		t.Errorf("%v, %s", err, &out)
	}
	t.Setenv("ARIZUKO_DATA", t.TempDir())
	if err := check(t.Context(), io.Discard); err == nil {
		t.Error("no secret is no error")
	}
}

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "onbod", Config{}, config.Base{})
}

func TestConfig_InvalidValues_AllReported(t *testing.T) {
	_, err := config.Load[Config]([]string{
		"ONBOD_ADDR=8082", "OPERATORS=Ada", "REQUEST_TTL=1h", "REQUESTS_PER_SENDER=0", "REQUESTS_PER_HOUR=-1", "REQUESTS_PENDING=10001",
	})
	problems, ok := err.(config.Problems)
	if !ok || len(problems) != 6 {
		t.Errorf("got %v", err)
	}
}
