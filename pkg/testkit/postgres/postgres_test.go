package postgres_test

import (
	"os/exec"
	"strings"
	"testing"

	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/postgres"
)

func TestServer_Started_AnswersUntilItIsStopped(t *testing.T) {
	need.Verify(t)
	need.Program(t, "psql", "postgresql")
	s, err := postgres.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (string, error) {
		out, err := exec.Command("psql", s.URL(), "-Atc", "SELECT current_setting('server_encoding')").CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if got, err := ask(); got != "UTF8" || err != nil {
		t.Errorf("encoding %q, %v", got, err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if got, err := ask(); err == nil {
		t.Errorf("it still answers %q", got)
	}
}
