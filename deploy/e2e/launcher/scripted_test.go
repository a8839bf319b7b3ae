package launcher

import (
	"bufio"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/testkit/need"
)

// maxEarlyExits is a limit of the launcher.
const maxEarlyExits = 5

func TestLauncher_CannotStart_SaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		program, script string // in place of the usual one
		env             string
		code            int
		want            string
	}{
		"migration fails":       {"migrate", "echo is locked >&2; exit 75", "", 75, "migrate  | is locked\n"},
		"migration is killed":   {"migrate", "kill -9 $$", "", 1, "migrate up: ended with signal: killed"},
		"daemon exits 78":       {"gated", "echo GATED_X: no; exit 78", "", 78, "gated ended with exit status 78, last output: GATED_X: no (attempt 1)"},
		"daemon exits 3":        {"routd", "printf 'no disk' >&2; exit 3", "", 1, "routd ended with exit status 3, last output: no disk (attempt 5)"},
		"daemon exits 0":        {"dashd", "", "", 1, "dashd ended with exit status 0 (attempt 5)"},
		"daemon exits 75":       {"dashd", "exit 75", "", 75, "dashd ended with exit status 75 (attempt 5)"},
		"daemon is killed":      {"gated", "kill -9 $$", "", 1, "gated ended with signal: killed (attempt 5)"},
		"no program":            {"gated", "exec /nowhere/gated", "", 1, "gated ended with exit status 127"},
		"invalid program":       {"gated", "", "", 1, "gated ended with fork/exec"},
		"not an adapter":        {"", "", "ACCOUNTS=gated+work", 78, `ACCOUNTS: "gated+work" is not an adapter`},
		"no folder can be made": {"", "", "ARIZUKO_DATA=/dev/null/data", 78, "ARIZUKO_DATA: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := withScripts(t, nil)
			switch {
			case name == "invalid program":
				f.writeProgram(tc.program, "\x7fELF") // the kernel refuses to run it
			case tc.program != "":
				f.script(tc.program, tc.script)
			case tc.env != "":
				f.Instance.Env = append(f.Instance.Env, tc.env)
			}
			l := f.Launch()
			l.WantEnd(tc.code)
			text := l.Stderr()
			if !strings.Contains(text, tc.want) || l.Stdout() != "" || tc.program == "migrate" && strings.Contains(text, "started") {
				t.Errorf("stdout: %q, stderr:\n%s", l.Stdout(), text)
			}
		})
	}
}

func TestLauncher_AdapterFails_OthersGoOn(t *testing.T) {
	f := withScripts(t, map[string]string{
		"teled": "exit 78",
		"discd": "echo again; exit 1",
	}, "TELEGRAM_BOT_TOKEN=t", "DISCORD_BOT_TOKEN_FILE=/nowhere", "SLACK_BOT_TOKEN=")
	l := f.Launch()
	l.WaitOutput("slakd: not started, SLACK_BOT_TOKEN is not set")
	l.WaitOutput("teled: ended with exit status 78: invalid configuration or incompatible database, not restarted")
	f.Until("discd to be restarted more often than an essential daemon", func() bool {
		return strings.Count(l.Stderr(), "discd    | again") > maxEarlyExits
	})
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
	if n := strings.Count(l.Stderr(), "teled: "); n != 1 {
		t.Errorf("%d lines about teled", n)
	}
}

// The program of an account is that of its platform, with the account's own variables.
func TestLauncher_FurtherAccount_RunsWithItsVariables(t *testing.T) {
	l := withScripts(t, map[string]string{
		"teled": `echo "$TELED_ACCOUNT $TELEGRAM_BOT_TOKEN$TELEGRAM_BOT_TOKEN_FILE $TELED_ADDR $BOTS"; exec sleep 1000`,
	}, "ACCOUNTS=teled+work,slakd+x", "TELEGRAM_BOT_TOKEN=t", "TELEGRAM_BOT_TOKEN_WORK_FILE=/w", "TELED_ADDR_WORK=127.0.0.1:9", "BOTS=none", "BOTS_WORK=all").Launch()
	l.WaitOutput("slakd+x: not started, SLACK_BOT_TOKEN_X is not set")
	l.WaitOutput("teled+work | work /w 127.0.0.1:9 all")
	l.WaitOutput("teled    |  t ")
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
}

func TestLauncher_StopSignals_StopDaemons(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // a test under nohup would make the launcher ignore them
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			l := withScripts(t, nil).Launch()
			l.WaitOutput("routd    | started")
			l.WaitOutput("gated    | started")
			l.Signal(sig)
			l.WantEnd(0)
		})
	}
}

func TestLauncher_SignalDuringMigration_Stops(t *testing.T) {
	l := withScripts(t, map[string]string{"migrate": "echo busy; exec sleep 1000"}).Launch()
	l.WaitOutput("migrate  | busy")
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
}

func TestLauncher_Stop_AdaptersFirstRoutdLast(t *testing.T) {
	const polite = `trap 'echo bye; kill $!; exit 0' TERM; sleep 1000 & echo up; wait`
	f := withScripts(t, map[string]string{"routd": polite, "gated": polite, "dashd": polite, "teled": polite}, "TELEGRAM_BOT_TOKEN=t")
	l := f.Launch()
	for _, name := range []string{"routd", "gated", "dashd", "teled"} {
		l.WaitOutput(name + "    | up")
	}
	// A shell's child that is no sleep yet would ignore the signal.
	f.Until("four sleeps", func() bool { return len(f.Processes("sleep")) == 4 })
	l.Signal(syscall.SIGTERM)
	l.WantEnd(0)
	at := func(name string) int { return strings.Index(l.Stderr(), name+"    | bye") }
	first, last := min(at("dashd"), at("teled")), max(at("dashd"), at("teled"))
	if first < 0 || last > at("gated") || at("gated") > at("routd") {
		t.Error("the daemons stopped in another order")
	}
}

// stubborn ignores SIGTERM, as does a child in a separate process group.
const stubborn = `trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 1000; done`

func TestLauncher_SecondInterrupt_Kills(t *testing.T) {
	l := withScripts(t, map[string]string{"gated": stubborn, "routd": stubborn}).Launch()
	l.WaitOutput("gated    | up")
	l.WaitOutput("routd    | up")
	l.Signal(syscall.SIGINT)
	l.WaitOutput("stopping")
	l.Signal(syscall.SIGINT)
	l.WantEnd(0)
	if out := l.Stderr(); strings.Contains(out, "did not stop within") {
		t.Errorf("it waited for the daemons:\n%s", out)
	}
}

func TestLauncher_DaemonIgnoresStop_KilledAfterTimeout(t *testing.T) {
	need.Verify(t)
	l := withScripts(t, map[string]string{"gated": stubborn}).Launch()
	l.WaitOutput("gated    | up")
	l.Signal(syscall.SIGTERM)
	l.Signal(syscall.SIGTERM) // is not a second Ctrl-C
	l.WantEnd(0)
	if !strings.Contains(l.Stderr(), "gated: did not stop within 10s, killed") {
		t.Error("the kill is not printed")
	}
}

func TestLauncher_StderrClosed_StillStops(t *testing.T) {
	f := withScripts(t, map[string]string{"gated": "echo up; exec sleep 1000"})
	cmd := f.Instance.Command("launcher")
	cmd.Dir = f.Instance.Dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); !strings.HasPrefix(lines.Text(), "gated    | up"); {
		if !lines.Scan() {
			t.Fatal("the output has ended")
		}
	}
	stderr.Close()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || len(f.Processes("")) > 0 {
		t.Errorf("%v, processes %v are left", err, f.Processes(""))
	}
}
