package upkeep

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/migrations"
	"arizuko/pkg/store/storetest"
)

// arguments of subcommands that take some. A subcommand that is not here has none.
var arguments = map[string][]string{
	"gated broadcast": {"--folder", "main", "hello"}, "gated cancel": {"1"}, "gated context": {"show", "1"}, "gated egress": {"log"}, "gated replay": {"1"}, "gated retry": {"1"},
	"gated why": {"1"}, "routd access": {"telegram:1", "telegram:1"}, "routd groups": {"list"}, "routd hooks": {"list"}, "routd routes": {"list"},
	"onbod approve": {"ABC", "main"}, "onbod reject": {"ABC"}, "onbod reopen": {"ABC"},
	"dashd backup": {"-"},
}

// aside are the subcommands that do not look at the database of the data folder.
var aside = []string{"gated agent", "gated secret", "dashd restore"}

// subcommands are those that a program's help names.
func subcommands(t *testing.T, f *harness.Fixture, program string) []string {
	t.Helper()
	help, err := f.Instance.Command(program, "--help").CombinedOutput()
	_, list, _ := strings.Cut(string(help), "[")
	list, _, found := strings.Cut(list, " | --help")
	if err != nil || !found {
		t.Fatalf("%s --help: %v: %s", program, err, help)
	}
	return strings.Split(list, " | ")
}

// TestSchema_OfAnotherVersion_EveryCommandNamesBothAndTheRemedy tries all subcommands of all programs on a database whose
// schema is one version newer or older.
func TestSchema_OfAnotherVersion_EveryCommandNamesBothAndTheRemedy(t *testing.T) {
	storetest.OnFile(t)
	t.Parallel()
	latest := migrations.Latest()
	for name, tc := range map[string]struct {
		version, floor int
		migrate        []string // subcommands of migrate that name both
		remedy         string
	}{
		"newer": {latest + 1, latest + 1, []string{"up", "down", "rehearse"}, "newer program|install the version that migrated"},
		"older": {latest - 1, 1, nil, "run `migrate up`"},
	} {
		f := harness.NewFixture(t, programs, harness.Options{Env: []string{"ACCOUNTS="}})
		f.Migrate()
		f.Exec(`UPDATE schema_migrations SET version = ?`, tc.version)
		f.Exec(`UPDATE schema_floor SET floor = ?`, tc.floor)
		var commands []string
		for _, program := range []string{"gated", "routd", "onbod", "dashd", "teled", "discd", "slakd"} {
			for _, sub := range subcommands(t, f, program) {
				commands = append(commands, program+" "+sub)
			}
		}
		for _, sub := range tc.migrate {
			commands = append(commands, "migrate "+sub)
		}
		if name == "newer" { // of an older one it makes a newer
			commands = append(commands, "launcher")
		}
		for _, command := range commands {
			if slices.Contains(aside, command) {
				continue
			}
			t.Run(name+"/"+command, func(t *testing.T) {
				out := tryCommand(t, f, command)
				named := func(version int) bool {
					return strings.Contains(out, fmt.Sprintf("%d", version))
				}
				remedy := slices.ContainsFunc(strings.Split(tc.remedy, "|"), func(text string) bool { return strings.Contains(out, text) })
				if !named(tc.version) || !named(latest) || !remedy {
					t.Errorf("it does not name %d, %d and %q:\n%.2000s", tc.version, latest, tc.remedy, out)
				}
			})
		}
	}
}

// tryCommand returns the output of a command. A daemon that waits for the schema is stopped once it says so.
func tryCommand(t *testing.T, f *harness.Fixture, command string) string {
	t.Helper()
	program, sub, _ := strings.Cut(command, " ")
	args := arguments[command]
	if sub != "" {
		args = append([]string{sub}, args...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	name := f.Instance.Program(program)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(slices.Clone(f.Instance.Env), "TELEGRAM_BOT_TOKEN=1:x", "DISCORD_BOT_TOKEN=x", "SLACK_BOT_TOKEN=xoxb-x", "SLACK_APP_TOKEN=xapp-x",
		"TELEGRAM_API_URL=http://127.0.0.1:1", "DISCORD_API_URL=http://127.0.0.1:1", "SLACK_API_URL=http://127.0.0.1:1/api/")
	cmd.Dir = filepath.Dir(f.Data)
	cmd.WaitDelay = time.Second
	var out stopWhen
	out.stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	if sub == "serve" {
		out.text = "waiting for the schema"
	}
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // fails, by which code other tests say
	return out.String()
}

// stopWhen keeps the output, and calls stop once it contains a text.
type stopWhen struct {
	strings.Builder
	text string
	stop func()
}

func (s *stopWhen) Write(p []byte) (int, error) {
	n, err := s.Builder.Write(p)
	if s.text != "" && strings.Contains(s.String(), s.text) {
		s.text = ""
		s.stop()
	}
	return n, err
}
