package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
)

func TestSchema_Missing_DaemonsWait(t *testing.T) {
	t.Parallel()
	f := harness.NewFixture(t, programs, harness.Options{})
	for _, daemon := range []string{harness.Gated, harness.Routd} {
		f.StartDaemon(daemon)
		f.Until(daemon+" to wait for the migration", func() bool { return strings.Contains(f.NotReadyReason(daemon), "migrate up") })
	}
	f.Migrate()
	f.WaitReady(harness.Gated)
	f.WaitReady(harness.Routd)
	f.AddGroups("main")
	f.Say("web:main", "hello")
	f.WantEchoes("web:main", "hello")
}

func TestSchema_TooOld_DaemonsWait(t *testing.T) {
	t.Parallel()
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	if out, err := f.Instance.Command("migrate", "down").CombinedOutput(); err != nil {
		t.Fatalf("migrate down: %v\n%s", err, out)
	}
	f.StartDaemon(harness.Gated)
	f.Until("gated to wait for the migration", func() bool { return strings.Contains(f.NotReadyReason(harness.Gated), "needs") })
	if out, err := f.Instance.Command("migrate", "up").CombinedOutput(); err != nil {
		t.Fatalf("migrate up: %v\n%s", err, out)
	}
	f.WaitReady(harness.Gated)
}

func TestSchema_TooNew_DaemonsExit78(t *testing.T) {
	t.Parallel()
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	f.Exec(`UPDATE schema_migrations SET version = 99`)
	f.StartDaemon(harness.Gated)
	f.WaitReady(harness.Gated) // a newer schema alone is fine
	if code := f.Stop(harness.Gated); code != 0 {
		t.Errorf("gated ended with %d", code)
	}
	f.Exec(`UPDATE schema_floor SET floor = 99`)
	for _, daemon := range []string{harness.Gated, harness.Routd} {
		f.StartDaemon(daemon)
		if code := f.ExitCode(daemon); code != 78 {
			t.Errorf("%s ended with %d", daemon, code)
		}
		if log := f.Log(daemon); !strings.Contains(log, "too old") {
			t.Errorf("log of %s:\n%s", daemon, log)
		}
	}
}

func TestGated_SecondOnSameFolder_IsRefused(t *testing.T) {
	t.Parallel()
	f := harness.Start(t, programs, harness.Options{})
	out, err := f.Instance.Command(harness.Gated).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "lock") {
		t.Errorf("%v\n%s", err, out)
	}
}
