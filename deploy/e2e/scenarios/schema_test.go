package scenarios

import (
	"strings"
	"testing"
)

func TestDaemonsWaitForTheMigration(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	for _, daemon := range []string{Gated, Routd} {
		s.StartDaemon(daemon)
		s.Until(daemon+" says what it waits for", func() bool { return strings.Contains(s.Waits(daemon), "migrate up") })
	}
	s.Migrate()
	s.WaitReady(Gated)
	s.WaitReady(Routd)
	s.Group("main")
	s.Say("web:main", "hello")
	s.HasHeard("web:main", "hello")
}

func TestDaemonsWaitForANewerSchema(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	s.Migrate()
	if out, err := s.instance.Command("migrate", "down").CombinedOutput(); err != nil {
		t.Fatalf("migrate down: %v\n%s", err, out)
	}
	s.StartDaemon(Gated)
	s.Until("gated says what it waits for", func() bool { return strings.Contains(s.Waits(Gated), "needs") })
	if out, err := s.instance.Command("migrate", "up").CombinedOutput(); err != nil {
		t.Fatalf("migrate up: %v\n%s", err, out)
	}
	s.WaitReady(Gated)
}

func TestDaemonsRefuseASchemaTheyAreTooOldFor(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	s.Migrate()
	s.Exec(`UPDATE schema_migrations SET version = 99`)
	s.StartDaemon(Gated)
	s.WaitReady(Gated) // a newer schema alone is fine
	if code := s.Stop(Gated); code != 0 {
		t.Errorf("gated ended with %d", code)
	}
	s.Exec(`UPDATE schema_floor SET floor = 99`)
	for _, daemon := range []string{Gated, Routd} {
		s.StartDaemon(daemon)
		if code := s.ExitCode(daemon); code != 78 {
			t.Errorf("%s ended with %d", daemon, code)
		}
		if log := s.Log(daemon); !strings.Contains(log, "too old") {
			t.Errorf("%s says:\n%s", daemon, log)
		}
	}
}

func TestASecondGatedIsRefused(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	out, err := s.instance.Command(Gated).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "lock") {
		t.Errorf("%v\n%s", err, out)
	}
}
