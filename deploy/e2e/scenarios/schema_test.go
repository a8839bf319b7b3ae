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

func TestSchema_TakenBackUnderRunningDaemons_IsRefusedAndSaidEverywhere(t *testing.T) {
	t.Parallel()
	f := harness.Start(t, programs, harness.Options{})
	run := func(program string, args ...string) string {
		out, err := f.Instance.Command(program, args...).CombinedOutput()
		if err == nil {
			t.Errorf("%s %q succeeds: %s", program, args, out)
		}
		return string(out)
	}
	for _, needs := range []string{"gated.lock is locked by process ", "routd.lock is locked by process ", "stop the new daemons first"} {
		if out := run("migrate", "down"); !strings.Contains(out, needs) {
			t.Errorf("migrate down says %s, want %s", out, needs)
		}
	}
	f.Exec(`UPDATE schema_migrations SET version = version - 1`) // as a migrate of before, which does not look
	f.Until("gated to notice", func() bool { return strings.Contains(f.NotReadyReason(harness.Gated), "the schema was changed") })
	const remedy = "if it was taken back on purpose, stop the daemons of this version"
	for _, command := range [][]string{{"gated", "health"}, {"gated", "why", "1"}, {"gated", "lost"}, {"gated", "check"}} {
		if out := run(command[0], command[1:]...); strings.Count(out, remedy) != 1 {
			t.Errorf("%q says %s", command, out)
		}
	}
	f.Exec(`UPDATE schema_migrations SET version = version + 1`)
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
