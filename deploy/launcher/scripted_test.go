package main

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMigrationThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		code   int
		says   string
	}{
		"code":   {"echo is locked >&2; exit 75", 75, "migrate  | is locked\n"},
		"signal": {"kill -9 $$", 1, "migrate up: ended with signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			l := scripted(t, map[string]string{"migrate": tc.script}).launch()
			l.ends(tc.code)
			if text := l.stderr(); !strings.Contains(text, tc.says) || strings.Contains(text, "started") {
				t.Errorf("it said\n%s", text)
			}
		})
	}
}

func TestDaemonThatDoesNotStart(t *testing.T) {
	for name, tc := range map[string]struct {
		daemon, script string
		code           int
		says           string
	}{
		"refuses":     {"gated", "echo GATED_X: no; exit 78", 78, "gated ended with exit status 78, its last words: GATED_X: no (attempt 1)"},
		"fails":       {"routd", "echo no disk >&2; exit 3", 1, "routd ended with exit status 3, its last words: no disk (attempt 5)"},
		"just ends":   {"dashd", "", 1, "dashd ended with exit status 0 (attempt 5)"},
		"is locked":   {"dashd", "exit 75", 75, "dashd ended with exit status 75 (attempt 5)"},
		"is killed":   {"gated", "kill -9 $$", 1, "gated ended with signal: killed (attempt 5)"},
		"no program":  {"gated", "exec /nowhere/gated", 1, "gated ended with exit status 127"},
		"not a shell": {"gated", "", 1, "gated ended with fork/exec"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted(t, map[string]string{tc.daemon: tc.script})
			if name == "not a shell" {
				p.brokenProgram(tc.daemon)
			}
			l := p.launch()
			l.ends(tc.code)
			if text := l.stderr(); !strings.Contains(text, tc.says) {
				t.Errorf("it said\n%s", text)
			}
			if l.stdout() != "" {
				t.Errorf("it printed %q", l.stdout())
			}
		})
	}
}

func TestAdaptersAreOnTheirOwn(t *testing.T) {
	l := scripted(t, map[string]string{
		"teled": "exit 78",
		"discd": "echo again; exit 1",
	}, "TELEGRAM_BOT_TOKEN=t", "DISCORD_BOT_TOKEN_FILE=/nowhere", "SLACK_BOT_TOKEN=").launch()
	l.says("slakd: not started, SLACK_BOT_TOKEN is not set")
	l.says("teled: ended with exit status 78, its configuration or the database is refused: not started again")
	l.until("discd has been started more often than an essential daemon would", func() bool {
		return strings.Count(l.stderr(), "discd    | again") > maxTries
	})
	l.signal(syscall.SIGINT)
	l.ends(0)
	if n := strings.Count(l.stderr(), "teled: "); n != 1 {
		t.Errorf("%d lines about teled", n)
	}
}

func TestEachSignalStops(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // else a test under nohup passes on that it ignores them
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			l := scripted(t, nil).launch()
			l.says("routd    | started")
			l.says("gated    | started")
			l.signal(sig)
			l.ends(0)
		})
	}
}

func TestStopWhileMigrating(t *testing.T) {
	l := scripted(t, map[string]string{"migrate": "echo busy; exec sleep 1000"}).launch()
	l.says("migrate  | busy")
	l.signal(syscall.SIGINT)
	l.ends(0)
}

func TestStopInReverseOrder(t *testing.T) {
	const polite = `trap 'echo bye; kill $!; exit 0' TERM; sleep 1000 & echo up; wait`
	l := scripted(t, map[string]string{"routd": polite, "gated": polite, "dashd": polite, "teled": polite}, "TELEGRAM_BOT_TOKEN=t").launch()
	for _, name := range []string{"routd", "gated", "dashd", "teled"} {
		l.says(name + "    | up")
	}
	l.signal(syscall.SIGTERM)
	l.ends(0)
	at := func(name string) int { return strings.Index(l.stderr(), name+"    | bye") }
	first, last := min(at("dashd"), at("teled")), max(at("dashd"), at("teled"))
	if first < 0 || last > at("gated") || at("gated") > at("routd") {
		t.Error("not in this order")
	}
}

// stubborn ignores requests to end, as does a process it has put into a group of its own.
const stubborn = `trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 1000; done`

func TestSecondInterruptKills(t *testing.T) {
	l := scripted(t, map[string]string{"gated": stubborn, "routd": stubborn}).launch()
	l.says("gated    | up")
	l.says("routd    | up")
	l.signal(syscall.SIGINT)
	l.says("stopping")
	began := time.Now()
	l.signal(syscall.SIGINT)
	l.ends(0)
	if took := time.Since(began); took > stopTimeout/2 {
		t.Errorf("it took %s", took)
	}
}

func TestDaemonThatDoesNotStop(t *testing.T) {
	l := scripted(t, map[string]string{"gated": stubborn}).launch()
	l.says("gated    | up")
	l.signal(syscall.SIGTERM)
	l.signal(syscall.SIGTERM) // is no second Ctrl-C
	l.ends(0)
	if !strings.Contains(l.stderr(), "gated: does not stop, killed after 10s") {
		t.Error("it does not say so")
	}
}

func TestOutputIsPassedOnWhole(t *testing.T) {
	l := scripted(t, map[string]string{
		"gated": `head -c 3000000 /dev/zero | tr '\0' x; echo; echo out; echo err >&2; printf 'no end'; exec sleep 1000`,
	}).launch()
	l.says("gated    | out\ngated    | err\n")
	if n := strings.Count(l.stderr(), "x"); n != 3_000_000 {
		t.Errorf("%d bytes of the long line", n)
	}
	l.signal(syscall.SIGINT)
	l.ends(0)
	if !strings.Contains(l.stderr(), "gated    | no end\n") {
		t.Error("an unfinished line is lost")
	}
}

func TestStopWithNobodyReading(t *testing.T) {
	l := scripted(t, map[string]string{"gated": "echo up; exec sleep 1000"})
	cmd := exec.Command(filepath.Join(l.bin, "launcher"))
	cmd.Env = l.env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); !strings.HasPrefix(lines.Text(), "gated    | up"); {
		if !lines.Scan() {
			t.Fatal("its output ends")
		}
	}
	stderr.Close()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || len(l.left()) > 0 {
		t.Errorf("%v, left %v", err, l.left())
	}
}

func TestMissingProgram(t *testing.T) {
	l := bare(t).launch()
	l.ends(1)
	if !strings.Contains(l.stderr(), "launcher: there is no program at "+l.bin+"/routd: build it first\n") {
		t.Errorf("it said %q", l.stderr())
	}
}

func TestDataFolderThatCannotBeMade(t *testing.T) {
	p := scripted(t, nil)
	p.env = append(p.env, "ARIZUKO_DATA=/dev/null/data")
	p.launch().ends(78)
}
