package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
)

func TestHistory_After_DecidesStep(t *testing.T) {
	const short, long = time.Second, stableAfter
	for name, tc := range map[string]struct {
		codes    []int
		uptime   time.Duration
		decisive bool
		want     step
	}{
		"a failure":                           {[]int{1}, short, true, restart},
		"an unexpected exit 0":                {[]int{0}, short, true, restart},
		"a held lock":                         {[]int{75}, short, true, restart},
		"a signal":                            {[]int{-1}, short, true, restart},
		"refused at the start":                {[]int{78}, short, true, failAll},
		"refused later":                       {[]int{78}, long, false, leaveStopped},
		"four times":                          {[]int{1, 0, 75, -1}, short, true, restart},
		"five times":                          {[]int{1, 0, 75, -1, 1}, short, true, failAll},
		"five times with long uptimes":        {[]int{1, 1, 1, 1, 1}, long, true, restart},
		"any number of times after the start": {slices.Repeat([]int{1}, 50), short, false, restart},
	} {
		past, last := newHistory(), restart
		for _, code := range tc.codes {
			last, _ = past.after(code, tc.uptime, tc.decisive)
		}
		if last != tc.want {
			t.Errorf("%s: %v, want %v", name, last, tc.want)
		}
	}
}

func TestHistory_After_BacksOff(t *testing.T) {
	past := newHistory()
	want := minDelay
	for range 12 {
		_, delay := past.after(1, time.Second, false)
		if delay < want*8/10 || delay > want*12/10 {
			t.Errorf("exit %d: delay %s, want about %s", past.exits, delay, want)
		}
		want = min(2*want, maxDelay)
	}
	if _, delay := past.after(1, stableAfter, false); delay > minDelay*12/10 {
		t.Errorf("after a long uptime: delay %s", delay)
	}
}

func TestLauncherExitCode_OfDaemon(t *testing.T) {
	for code, want := range map[int]int{75: 75, 78: 78, 0: 1, 1: 1, 2: 1, -1: 1, 143: 1} {
		if got := launcherExitCode(code); got != want {
			t.Errorf("%d becomes %d, want %d", code, got, want)
		}
	}
}

func TestChoose_TokensAndPrograms_StartOrSkip(t *testing.T) {
	accounts, err := daemon.Accounts([]string{"ACCOUNTS=teled+work"})
	if err != nil {
		t.Fatal(err)
	}
	all := services(Config{RoutdAddr: "h:1", GatedAddr: "h:2", DashdAddr: "h:3"}, accounts)
	set := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for name, tc := range map[string]struct {
		programs string
		set      func(string) bool
		start    []string
		skipped  string // a part of the lines
		fails    bool
	}{
		"nothing set": {"routd gated dashd teled discd slakd", set(), []string{"routd", "gated", "dashd"},
			"teled: not started, TELEGRAM_BOT_TOKEN is not set", false},
		"a token": {"routd gated dashd teled discd slakd", set("DISCORD_BOT_TOKEN"), []string{"routd", "gated", "dashd", "discd"},
			"slakd: not started, SLACK_BOT_TOKEN is not set", false},
		"a token without a program": {"routd gated dashd", set("SLACK_BOT_TOKEN"), []string{"routd", "gated", "dashd"},
			"slakd: not started, SLACK_BOT_TOKEN is set but there is no program at ", false},
		"onbod": {"routd gated dashd onbod", set(), []string{"routd", "gated", "onbod", "dashd"}, "", false},
		"a further account": {"routd gated dashd teled", set("TELEGRAM_BOT_TOKEN_WORK", "TELED_ADDR_WORK"), []string{"routd", "gated", "dashd", "teled+work"},
			"teled: not started, TELEGRAM_BOT_TOKEN is not set", false},
		"a further account without a token": {"routd gated dashd teled", set("TELEGRAM_BOT_TOKEN"), []string{"routd", "gated", "dashd", "teled"},
			"teled+work: not started, TELEGRAM_BOT_TOKEN_WORK is not set", false},
		"a further account without an address": {"routd gated dashd teled", set("TELEGRAM_BOT_TOKEN_WORK"), []string{"routd", "gated", "dashd"},
			"teled+work: not started, TELED_ADDR_WORK is not set", false},
		"no dashd":    {"routd gated", set(), nil, "", true},
		"no programs": {"", set(), nil, "", true},
	} {
		bin := t.TempDir()
		for program := range strings.FieldsSeq(tc.programs) {
			if err := os.WriteFile(filepath.Join(bin, program), nil, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		start, skipped, err := choose(all, bin, tc.set)
		var names []string
		for _, s := range start {
			names = append(names, s.name)
		}
		fails := err != nil && strings.HasPrefix(err.Error(), "no program at "+bin) && strings.HasSuffix(err.Error(), "build it first")
		if diff := cmp.Diff(tc.start, names); diff != "" || fails != tc.fails {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
		if text := strings.Join(skipped, "\n"); !strings.Contains(text, tc.skipped) || strings.Contains(text, "onbod") {
			t.Errorf("%s: skipped:\n%s", name, text)
		}
	}
}

func TestIsSet_EmptyOrFile(t *testing.T) {
	for _, name := range []string{"LAUNCHER_TEST_TOKEN", "LAUNCHER_TEST_TOKEN_FILE"} {
		t.Setenv(name, "")
		if isSet("LAUNCHER_TEST_TOKEN") {
			t.Error("an empty variable counts")
		}
		t.Setenv(name, "x")
		if !isSet("LAUNCHER_TEST_TOKEN") {
			t.Errorf("%s does not count", name)
		}
		t.Setenv(name, "")
	}
}

func TestSource_Write_PrintsWholePrefixedLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, tc := range map[string]struct {
		writes []string
		want   string
		last   string
	}{
		"nothing":         {nil, "", ""},
		"a line":          {[]string{"a\n"}, "gated    | a\n", "a"},
		"lines at once":   {[]string{"a\n\nb\n"}, "gated    | a\ngated    | \ngated    | b\n", "b"},
		"a line in parts": {[]string{"a", "b", "c\nd"}, "gated    | abc\ngated    | d\n", "d"},
		"blank at last":   {[]string{"a\n", "\n", " \n"}, "gated    | a\ngated    | \ngated    |  \n", "a"},
		"bytes":           {[]string{"\xff\x00%d\n"}, "gated    | \xff\x00%d\n", "\xff\x00%d"},
		"without an end":  {[]string{long, "y\n"}, "gated    | " + long + "\ngated    | y\n", "y"},
		"long lastLine":   {[]string{long[:5000] + "\n"}, "gated    | " + long[:5000] + "\n", long[:maxLastLine]},
	} {
		var out bytes.Buffer
		s := &source{console: &console{w: &out}, name: "gated"}
		for _, text := range tc.writes {
			if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: Write: %d, %v", name, n, err)
			}
		}
		s.flush()
		if out.String() != tc.want || s.lastLine != tc.last {
			t.Errorf("%s: printed %.100q, last %.100q", name, out.String(), s.lastLine)
		}
	}
}

// writes records each Write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestConsole_ConcurrentSources_LinesStayWhole(t *testing.T) {
	var out writes
	c := &console{w: &out}
	var group sync.WaitGroup
	for _, name := range []string{"gated", "routd", "dashd"} {
		group.Go(func() {
			s := &source{console: c, name: name}
			for range 200 {
				_, _ = s.Write([]byte("one "))
				_, _ = s.Write([]byte("line\n"))
			}
		})
	}
	group.Wait()
	for _, line := range out {
		if _, text, _ := strings.Cut(line, " | "); text != "one line\n" {
			t.Fatalf("a write of %q", line)
		}
	}
	if len(out) != 600 {
		t.Errorf("%d lines", len(out))
	}
}

func TestInterrupts_SecondRightAfterFirst_Kills(t *testing.T) {
	stop, kill, release := interrupts(t.Context())
	defer release()
	for _, ctx := range []context.Context{stop, kill} {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
	}
}
